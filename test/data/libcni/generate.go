// SPDX-License-Identifier: Apache-2.0

// generate.go - writes the other files in this directory with libcni
//
// What:  results.json: every result below in every version that it can have, and libcni's
//
//	conversion of each of these to every version: the text, or the error.
//	cache/: the cache files that libcni writes, in its own directory layout and format.
//	request/: the input that libcni sends to a plugin on its standard input.
//
// How:   not part of the build or of the tests, which only read the files. To write them again:
//
//	in a directory with this file, `go mod init x`,
//	`go get github.com/containernetworking/cni@v1.3.0`, `go run . OUTPUT-FOLDER`.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"
)

var versions = []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

var bases = []struct{ what, text string }{
	{"both families", `{"cniVersion":"1.1.0",
		"interfaces":[{"name":"cni0","mac":"00:11:22:33:44:55"},
			{"name":"veth1","mac":"55:44:33:22:11:11","mtu":1400,"socketPath":"/run/x.sock","pciID":"8086:9a01"},
			{"name":"eth0","mac":"99:88:77:66:55:44","sandbox":"/var/run/netns/blue"}],
		"ips":[{"interface":2,"address":"10.1.0.5/16","gateway":"10.1.0.1"},
			{"interface":2,"address":"10.2.0.5/16"},
			{"interface":0,"address":"2001:db8::5/64","gateway":"2001:db8::1"}],
		"routes":[{"dst":"0.0.0.0/0"},{"dst":"10.9.0.0/16","gw":"10.1.0.9","mtu":1300,"advmss":1200,"priority":7,"table":0,"scope":253},
			{"dst":"::/0","gw":"2001:db8::1"}],
		"dns":{"nameservers":["10.1.0.1","2001:db8::1"],"domain":"example.test","search":["a.test","b.test"],"options":["ndots:5"]}}`},
	{"one address", `{"cniVersion":"1.0.0","ips":[{"address":"192.0.2.7/24"}],"dns":{}}`},
	{"IPv6 only", `{"cniVersion":"0.4.0","interfaces":[{"name":"eth0"}],
		"ips":[{"version":"6","interface":0,"address":"fd00::7/8","gateway":"fd00::1"}],
		"routes":[{"dst":"192.0.2.0/24"},{"dst":"fd01::/16"}],"dns":{"domain":"x"}}`},
	{"no address", `{"cniVersion":"1.1.0","interfaces":[{"name":"dummy0","mac":"00:11:22:33:44:55"}],"dns":{"search":["s"]}}`},
	{"old", `{"cniVersion":"0.2.0","ip4":{"ip":"1.2.3.30/24","gateway":"1.2.3.1","routes":[{"dst":"15.5.6.0/24","gw":"15.5.6.8"}]},
		"ip6":{"ip":"abcd:1234:ffff::cdde/64","gateway":"abcd:1234:ffff::1","routes":[{"dst":"1111:dddd::/80","gw":"1111:dddd::aaaa"}]},
		"dns":{"nameservers":["1.2.3.4","1::cafe"]}}`},
}

const network = `{"cniVersion":"1.0.0","cniVersions":["1.1.0","0.4.0","9.0.0"],"name":"podnet",
	"plugins":[
		{"type":"bridge","bridge":"cni0","ipam":{"type":"host-local","subnet":"10.1.0.0/16"},"dns":{"nameservers":["10.1.0.1"]}},
		{"type":"portmap","name":"mapper","capabilities":{"portMappings":true,"bandwidth":false},"runtimeConfig":{"gone":1}}
	]}`

const capabilities = `{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}],"bandwidth":1}`

// Texts are written once; In and Out are their numbers.
type pair struct {
	What  string `json:"what"`
	From  string `json:"from"`
	To    string `json:"to"`
	In    int    `json:"in"`
	Out   int    `json:"out"`
	Error string `json:"error,omitempty"`
}

type table struct {
	Texts []string `json:"texts"`
	Pairs []pair   `json:"pairs"`
}

func (t *table) number(text string) int {
	for i, known := range t.Texts {
		if known == text {
			return i
		}
	}
	t.Texts = append(t.Texts, text)
	return len(t.Texts) - 1
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func text(result types.Result) string {
	b, err := json.MarshalIndent(result, "", "    ")
	must(err)
	return string(b)
}

func convert(in []byte, to string) (string, error) {
	result, err := create.CreateFromBytes(in)
	must(err)
	as, err := result.GetAsVersion(to)
	if err != nil {
		return "", err
	}
	return text(as), nil
}

func pairs() *table {
	t := &table{}
	for _, base := range bases {
		for _, from := range versions {
			in, err := convert([]byte(base.text), from)
			if err != nil {
				continue
			}
			for _, to := range versions {
				p := pair{What: base.what, From: from, To: to, In: t.number(in)}
				out, err := convert([]byte(in), to)
				if err != nil {
					p.Error = err.Error()
				} else {
					p.Out = t.number(out)
				}
				t.Pairs = append(t.Pairs, p)
			}
		}
	}
	return t
}

// What a plugin got, and its answer.
type recorder struct {
	folder string
	calls  int
}

func (r *recorder) ExecPlugin(_ context.Context, plugin string, stdin []byte, _ []string) ([]byte, error) {
	r.calls++
	if r.folder != "" {
		must(os.WriteFile(filepath.Join(r.folder, filepath.Base(plugin)+".json"), stdin, 0o644))
	}
	return []byte(bases[0].text), nil
}

func (r *recorder) FindInPath(plugin string, _ []string) (string, error) {
	return "/bin/" + plugin, nil
}

func (r *recorder) Decode(b []byte) (version.PluginInfo, error) {
	return (&version.PluginDecoder{}).Decode(b)
}

func main() {
	out := os.Args[1]
	b, err := json.MarshalIndent(pairs(), "", " ")
	must(err)
	must(os.WriteFile(filepath.Join(out, "results.json"), append(b, '\n'), 0o644))

	for name, text := range map[string]string{"list": network, "capabilities": capabilities, "result": bases[0].text} {
		must(os.WriteFile(filepath.Join(out, name+".json"), []byte(text), 0o644))
	}
	must(os.MkdirAll(filepath.Join(out, "request"), 0o755))
	exec := &recorder{folder: filepath.Join(out, "request")}
	list, err := libcni.ConfListFromBytes([]byte(network))
	must(err)
	cni := libcni.NewCNIConfigWithCacheDir([]string{"/bin"}, filepath.Join(out, "cache"), exec)
	var arguments map[string]interface{}
	must(json.Unmarshal([]byte(capabilities), &arguments))
	rt := &libcni.RuntimeConf{ContainerID: "c1", NetNS: "/var/run/netns/blue", IfName: "eth0",
		Args:           [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAME", "a b"}},
		CapabilityArgs: arguments,
	}
	_, err = cni.AddNetworkList(context.Background(), list, rt)
	must(err)
	exec.folder = ""
	_, err = cni.AddNetworkList(context.Background(), list, &libcni.RuntimeConf{ContainerID: "plain-id", IfName: "net1"})
	must(err)
}
