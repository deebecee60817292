// SPDX-License-Identifier: Apache-2.0

// go-net.go - writes go-net.tsv: how Go's net package parses several hundred addresses
//
//	go run go-net.go 50 >go-net.tsv
//
// A line is KIND, INPUT and the output of String() for the parsed value, or "-" if Go rejects the
// input. Some inputs are chosen; the rest are mutations of these, the same in every run. A larger
// number creates more mutations. One input is left out, because our result differs on purpose: a
// prefix of an IPv4-mapped address with fewer than 96 bits.
package main

import (
	"fmt"
	"math/rand"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
)

func ip(s string) string {
	if p := net.ParseIP(s); p != nil {
		return p.String()
	}
	return "-"
}
func cidr(s string) string {
	p, n, err := net.ParseCIDR(s)
	if err != nil {
		return "-"
	}
	return (&net.IPNet{IP: p, Mask: n.Mask}).String()
}
func mac(s string) string {
	m, err := net.ParseMAC(s)
	if err != nil {
		return "-"
	}
	return m.String()
}

var ips = strings.Fields(`0.0.0.0 1.2.3.4 255.255.255.255 127.0.0.1 256.0.0.1 1.2.3 1.2.3.4.5 1.2.3. .1.2.3 1..2.3 01.2.3.4 1.02.3.4 1.2.3.00 1.2.3.0
 0x1.2.3.4 1.2.3.4a a1.2.3.4 1.2.3.-4 +1.2.3.4 1.2.3.1000 1.2.3.256 1,2,3,4 16909060 1 0 1.2 1.2.3.4% 1.2.3.4%eth0 1.2.3.4/24 ١.2.3.4
 :: ::1 1:: ::1:2 1::2 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:: ::2:3:4:5:6:7:8 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7:8:: ::1:2:3:4:5:6:7:8 1:2:3:4::5:6:7:8 1:2:3::5:6:7:8
 : ::: :::1 1::: :1 1: :1:2:3:4:5:6:7 1:2:3:4:5:6:7: 1::2::3 ::1:: 0:0:0:0:0:0:0:0 0:0:0:0:0:0:0:1 00000::1 0000::1 12345::1 fffff::1 g::1 ::g FE80::1 fe80::A:b
 fe80::1%eth0 fe80::1%1 fe80::1% ::1%lo %eth0 % [::1] [::1 ::1] ::1/128 fe80:0:0:0:1:0:0:1 1:0:0:2:0:0:0:3 1:0:0:0:2:0:0:3 1:0:0:2:0:0:3:4 1:0:2:3:4:5:6:7 0:1:2:3:4:5:6:7 0:0:1:2:3:4:5:6 1:2:3:4:5:6:0:0 1:2:3:4:5:6:7:0
 0:1:0:1:0:1:0:1 1:0:1:0:1:0:1:0 0:0:1:0:0:1:0:0 2001:db8::1 2001:db8:0:0:1:0:0:1 2001:0db8::0001 2001:DB8:85A3::8A2E:370:7334 ff02::1 ff00:: fc00::/7 64:ff9b::1.2.3.4 64:ff9b::102:304
 ::ffff:1.2.3.4 ::FFFF:1.2.3.4 ::ffff:102:304 0:0:0:0:0:ffff:1.2.3.4 ::ffff:0:0 ::ffff:0.0.0.0 ::ffff:255.255.255.255 ::ffff:256.0.0.0 ::ffff:1.2.3 ::ffff:01.2.3.4 ::ffff:1.2.3.4.5 ::ffff:1.2.3.4: ::1.2.3.4 ::0.0.0.1 ::1.2.3.4:5 1.2.3.4:: 1.2.3.4::1 1:2:3:4:5:6:1.2.3.4 1:2:3:4:5:6:7:1.2.3.4 1:2:3:4:5:1.2.3.4 1::1.2.3.4 1:2:3:4:5::1.2.3.4 1:2:3:4:5:6::1.2.3.4
 ::ffff:0:1.2.3.4 ::fffe:1.2.3.4 ::1:ffff:1.2.3.4 ::ffff:1.2.3.4%eth0 ::ffff:g.2.3.4 ::ffff:1.2.3.4/24 0::ffff:1.2.3.4 ::ffff:1.2.3.0004 ::00001 ::0001 1:2:3:4:5:6:7:0008 1:2:3:4:5:6:7:00008 ::-1 ::+1 ::1. 1.:: :.: . .. ... :1.2.3.4 abcd abcd: localhost
 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255 0000:0000:0000:0000:0000:0000:0000:0000 1111:2222:3333:4444:5555:6666:7777:8888 0000:0000:0000:0000:0000:ffff:255.255.255.255`)
var lens = strings.Fields(`0 1 8 24 31 32 33 64 96 104 120 127 128 129 -1 +1 01 024 008 000 0000000024 1000000 99999999999999999999 a 2a a2 0x18 24/ /24 24.0 ٢ 3.2`)
var cidrbase = strings.Fields(`10.2.3.1 0.0.0.0 fd00::5 :: 2001:db8:1:2:3:4:5:6`)
var macs = strings.Fields(`00:00:5e:00:53:01 00-00-5e-00-53-01 0000.5e00.5301 00:00:5E:00:53:AF AB-CD-EF-ab-cd-ef ABCD.EFab.cdef 02:00:5e:10:00:00:00:01 02-00-5e-10-00-00-00-01 0200.5e10.0000.0001
 00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01 00-00-00-00-fe-80-00-00-00-00-00-00-02-00-5e-10-00-00-00-01 0000.0000.fe80.0000.0000.0000.0200.5e10.0000.0001
 00:00:5e:00:53 00:00:5e:00:53:01:02 00:00:5e:00:53:01:02:03:04 0:0:5e:0:53:1 00:00:5e-00:53:01 00-00-5e:00-53-01 00:00:5e:00:53:0 00:00:5e:00:53:0g 00:00:5e:00:53:01: :00:00:5e:00:53:01 00:00:5e:00:53:01:
 00005e005301 00005E005301 02005e1000000001 00005e0053011 00005e00530 00005e00530g 00000000fe8000000000000002005e1000000001 00.00.5e.00.53.01 0000:5e00:5301 0000-5e00-5301 0000.5e00 0000.5e00.530 0000.5e00.53011 0000.5e00:5301 0000.5e00.530g 000.05e0.05301 00000.5e00.531 01.02.03.04.05.06 01:02:03:04:05:06: x1:02:03:04:05:06 01.02.03.04.05.06.07.08
 01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13 01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13:14:15 ff:ff:ff:ff:ff:ff 00:00:00:00:00:00 g0:00:5e:00:53:01 00;00;5e;00;53;01 +1:02:03:04:05:06 01:02:03:04:05:+6 01:-2:03:04:05:06 01::02:03:04:05:6 ------------------ :::::::::::::::::  1234567890123`)

const alphabet = "0123456789abcdefABCDEF::::../%fg"

func mutate(r *rand.Rand, s, alpha string) string {
	b := []byte(s)
	for n := 1 + r.Intn(3); n > 0; n-- {
		c := alpha[r.Intn(len(alpha))]
		i := r.Intn(len(b) + 1)
		switch r.Intn(3) {
		case 0:
			b = append(b[:i], append([]byte{c}, b[i:]...)...)
		case 1:
			if i < len(b) {
				b[i] = c
			}
		case 2:
			if i < len(b) && len(b) > 1 {
				b = append(b[:i], b[i+1:]...)
			}
		}
	}
	return string(b)
}

func zeros6(r *rand.Rand) string {
	g := make([]string, 8)
	for i := range g {
		if r.Intn(3) > 0 {
			g[i] = "0"
		} else {
			g[i] = strconv.FormatInt(int64(r.Intn(65536)), 16)
		}
	}
	return strings.Join(g, ":")
}

func main() {
	extra, _ := strconv.Atoi(os.Args[1])
	r := rand.New(rand.NewSource(1))
	rows := map[string]bool{}
	add := func(kind, in, out string) {
		if in == "" || strings.ContainsAny(in, "\t\n\r\x00#") {
			return
		}
		rows[kind+"\t"+in+"\t"+out] = true
	}
	pick := func(l []string) string { return l[r.Intn(len(l))] }
	for _, s := range ips {
		add("ip", s, ip(s))
	}
	cid := func(s string) {
		out := cidr(s)
		// the documented difference: mapped addresses with fewer than 96 bits
		if i := strings.IndexByte(s, '/'); i > 0 && out != "-" && strings.Contains(s[:i], ":") && !strings.Contains(out, ":") {
			if n, _ := strconv.Atoi(s[i+1:]); n < 96 {
				return
			}
		}
		add("cidr", s, out)
	}
	for _, a := range cidrbase {
		for _, l := range lens {
			cid(a + "/" + l)
		}
		cid(a)
		cid(a + "/")
		cid("/" + a)
	}
	for _, s := range []string{"/24", "/", "1.2.3/24", "01.2.3.4/24", "1.2.3.4 /24", "1.2.3.4/ 24", "fe80::1%eth0/64", "1.2.3.4/24/24", "::ffff:1.2.3.4/120", "::ffff:1.2.3.4/96", "::ffff:1.2.3.4/128", "::ffff:1.2.3.4/129", "::ffff:102:304/120", "::1.2.3.4/120", "::ffff:1.2.3.4/24x", "[::1]/64", "1.2.3.4/255.255.255.0", "10.2.3.1/24", "10.255.255.255/8"} {
		cid(s)
	}
	for _, s := range macs {
		add("mac", s, mac(s))
	}
	for i := 0; i < extra; i++ {
		s := mutate(r, pick(ips), alphabet)
		add("ip", s, ip(s))
		s = zeros6(r)
		add("ip", s, ip(s))
		s = mutate(r, pick(ips)+"/"+pick(lens), alphabet)
		cid(s)
		s = mutate(r, pick(macs), "0123456789abcdefABCDEFg:::---...")
		add("mac", s, mac(s))
	}
	var out []string
	for k := range rows {
		out = append(out, k)
	}
	sort.Strings(out)
	fmt.Println("# SPDX-License-Identifier: Apache-2.0")
	fmt.Println("# Go's answers, written by go-net.go: kind, input, output or -")
	for _, l := range out {
		fmt.Println(l)
	}
}
