/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine/test-confine.c - what a confined process may do, and what it may not
 */
#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "base/mem.h"
#include "base/os/remove-tree.h"

/* Runs body() in a process that is confined to a new directory with a file "old" and a device
 * "null". Return: its exit status */
#define OPAQUE "trusted.overlay.opaque"

static pid_t parent; /* of the confined process */

static int run_confined_as(enum confine_role role, int (*body)(int root))
{
	char path[] = "/tmp/test-confine.XXXXXX";
	autoclose int root = -1, file = -1;
	struct hw_err e;
	int status = -1;
	pid_t pid;

	assert_non_null(mkdtemp(path));
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	file = openat(root, "old", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	assert_int_equal(write(file, "x", 1), 1);
	assert_int_equal(fchown(file, 5, 6), 0);
	assert_int_equal(fsetxattr(root, OPAQUE, "y", 1, 0), 0);
	assert_int_equal(mknodat(root, "null", S_IFCHR | 0666, makedev(1, 3)), 0);
	parent = getpid();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(confine(role, root, &e) < 0 ? 100 : body(root));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(remove_tree(AT_FDCWD, path, &e), 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int run_confined(int (*body)(int root))
{
	return run_confined_as(CONFINE_UNPACKER, body);
}

static void needs_root(void)
{
	if (geteuid() == 0)
		return;
	print_message("chroot() needs root\n");
	skip();
}

static int try_outside(int root)
{
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
		return 1;
	if (open("../../../../etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		return 2;
	return openat(root, "../etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 ? 3 : 0;
}

static void test_outside(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_confined(try_outside), 0);
}

static int try_create(int root)
{
	int fd = openat(root, "f", O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, "x", 1) != 1 || fchown(fd, 5, 6) < 0 || fchmod(fd, 06755) < 0)
		return 1;
	if (mkdirat(root, "d", 0700) < 0 || linkat(root, "f", root, "d/l", 0) < 0)
		return 2;
	if (mknodat(root, "c", S_IFCHR | 0600, makedev(1, 3)) < 0)
		return 3;
	if (fsetxattr(root, OPAQUE, "y", 1, 0) < 0)
		return 4;
	return syncfs(root) < 0 ? 5 : 0;
}

static void test_create(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_confined(try_create), 0);
}

/* A device can be created, but not be opened: by its path, through the descriptor of the root, or
 * through the current directory. */
static int try_device(int root)
{
	static const mode_t types[] = { S_IFCHR, S_IFBLK };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		/* 1:3 is /dev/null as a character device, and a RAM disk as a block device */
		if (mknodat(root, "device", types[i] | 0666, makedev(1, 3)) < 0)
			return 1;
		if (open("/device", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
			return 2;
		if (openat(root, "device", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
			return 3;
		if (openat(AT_FDCWD, "device", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
			return 4;
		if (unlinkat(root, "device", 0) < 0)
			return 5;
	}
	return 0;
}

static void test_device(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_confined(try_device), 0);
}

/* Finds every open descriptor of a directory, and tries it. */
static int try_descriptors(int root)
{
	if (mknodat(root, "device", S_IFCHR | 0666, makedev(1, 3)) < 0)
		return 1;
	for (int fd = 0; fd < 1024; fd++)
		if (openat(fd, "device", O_RDONLY | O_CLOEXEC) >= 0)
			return 2;
	return 0;
}

static void test_descriptors(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_confined(try_descriptors), 0);
}

/* System calls that are forbidden to every confined process; the last ones are allowed to a process
 * that talks to registries. */
static const long forbidden[] = {
	SYS_execve,
	SYS_mount,
	SYS_umount2,
	SYS_unshare,
	SYS_setns,
	SYS_ptrace,
	SYS_chroot,
	SYS_bpf,
	SYS_pivot_root,
	SYS_open_tree,
	SYS_move_mount,
	SYS_mount_setattr,
	SYS_fsopen,
	SYS_kill,
	SYS_keyctl,
	SYS_memfd_create,
	SYS_setuid,
	SYS_setxattr,
	SYS_reboot,
	SYS_io_uring_setup,
	SYS_init_module,
	SYS_process_vm_readv,
	SYS_open_by_handle_at,
	SYS_name_to_handle_at,
	SYS_listen,
	SYS_accept4,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_pidfd_getfd,
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_ioctl,
};

#define FORBIDDEN_TO_CLIENTS (ARRAY_SIZE(forbidden) - 4)

/* Makes the first @n calls by number, since a C library function may fail before it calls the
 * kernel. Return: 0, or 10 plus the index of a call that did not fail with ENOSYS */
static int try_forbidden(size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (syscall(forbidden[i], -1, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS)
			return (int)i + 10;
	return 0;
}

/* Return: 0 if the process can send signals only to itself, or 5 to 7 */
static int try_signals(int fd)
{
	if (syscall(SYS_tgkill, getpid(), getpid(), 0) != 0)
		return 5;
	if (syscall(SYS_tgkill, parent, parent, 0) == 0 || errno != EPERM)
		return 6;
	return fcntl(fd, F_SETOWN, parent) == 0 || fcntl(fd, F_SETSIG, SIGKILL) == 0 ? 7 : 0;
}

/* Return: 0 if the process can read and change its own limits only, or 8 or 9 */
static int try_limits(void)
{
	struct rlimit own;

	if (getrlimit(RLIMIT_CORE, &own) < 0 || setrlimit(RLIMIT_CORE, &own) < 0)
		return 8;
	return prlimit(parent, RLIMIT_CORE, NULL, &own) == 0 || errno != EPERM ? 9 : 0;
}

static void *run_thread(void *arg)
{
	return arg;
}

/* Return: 0 if the process can create threads only, or 4 or 14 */
static int try_threads(void)
{
	pthread_t thread;
	pid_t pid;

	if (pthread_create(&thread, NULL, run_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
		return 4;
	pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0 || errno != EPERM ? 14 : 0;
}

static int try_calls(int root)
{
	int r = try_forbidden(ARRAY_SIZE(forbidden));

	if (r == 0)
		r = try_signals(root);
	if (r != 0)
		return r;
	return syscall(SYS_clone, -1, 0, 0, 0, 0) != -1 || errno != ENOSYS ||
	       syscall(SYS_clone3, -1, 0) != -1 || errno != ENOSYS;
}

static void test_calls(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_confined(try_calls), 0);
}

/* Uses sendmsg(), like src/image/protocol/wire.c. */
static ssize_t send_byte(int fd)
{
	char byte = 'x';
	struct iovec iov = { &byte, 1 };

	return sendmsg(fd, &(struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 }, MSG_NOSIGNAL);
}

static int try_reader(void)
{
	int pair[2], file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct hw_err e;
	char byte;
	int r;

	if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 1;
	if (confine(CONFINE_READER, -1, &e) < 0)
		return 2;
	if (pread(file, &byte, 1, 0) != 1 || send_byte(pair[0]) != 1 ||
	    read(pair[1], &byte, 1) != 1)
		return 3;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOSYS)
		return 5;
	r = try_limits();
	if (r == 0)
		r = try_threads();
	return r != 0 ? r : try_forbidden(ARRAY_SIZE(forbidden));
}

/* Return: exit status of body() in a process of its own */
static int run_forked(int (*body)(void))
{
	int status = -1;
	pid_t pid;

	parent = getpid();
	pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_reader(void **state)
{
	(void)state;
	assert_int_equal(run_forked(try_reader), 0);
}

static int try_layer(int root)
{
	int fd = open("/old", O_RDONLY | O_CLOEXEC);
	char byte;

	if (fd < 0 || read(fd, &byte, 1) != 1 || fgetxattr(root, OPAQUE, &byte, 1) != 1)
		return 1;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
		return 2;
	if (open("/old", O_WRONLY | O_CLOEXEC) >= 0 || (errno != EROFS && errno != EACCES))
		return 3;
	if (open("/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 || errno != EROFS)
		return 4;
	if (openat(root, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 || errno != EROFS)
		return 5;
	if (open("/null", O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 6;
	if (fchmod(fd, 0666) == 0 || unlinkat(root, "old", 0) == 0)
		return 7;
	return try_calls(root);
}

static void test_layer(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_confined_as(CONFINE_LAYER, try_layer), 0);
}

static int try_compiler(void)
{
	int pair[2], file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct hw_err e;
	char byte;

	if (file < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return 1;
	if (confine(CONFINE_COMPILER, -1, &e) < 0)
		return 2;
	if (read(file, &byte, 1) != 1 || write(pair[1], &byte, 1) != 1)
		return 3;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOSYS)
		return 5;
	return try_calls(file);
}

static void test_compiler(void **state)
{
	(void)state;
	assert_int_equal(run_forked(try_compiler), 0);
}

static int try_supervisor(void)
{
	static const long calls[] = { SYS_execve,     SYS_socket,	  SYS_connect, SYS_mount,
				      SYS_unshare,    SYS_setns,	  SYS_ptrace,  SYS_bpf,
				      SYS_move_mount, SYS_io_uring_setup, SYS_setuid,  SYS_reboot };
	struct hw_err e;
	pid_t pid;
	int status = -1;

	if (confine(CONFINE_SUPERVISOR, -1, &e) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (syscall(calls[i], -1, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS)
			return (int)i + 10;
	pid = fork();
	if (pid == 0) /* an unpacker */
		_exit(confine(CONFINE_UNPACKER, open("/tmp", O_RDONLY | O_CLOEXEC), &e) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 2;
}

static void test_supervisor(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_forked(try_supervisor), 0);
}

/* ---- a process that talks to registries ----------------------------------------- */

static long landlock; /* version of the kernel's Landlock; negative if it has none */

static int become_client(void)
{
	struct hw_err e;

	return confine(CONFINE_CLIENT, -1, &e);
}

static int try_client_calls(void)
{
	int r;

	if (become_client() < 0)
		return 1;
	r = try_signals(STDERR_FILENO);
	if (r == 0)
		r = try_limits();
	if (r == 0)
		r = try_threads();
	return r != 0 ? r : try_forbidden(FORBIDDEN_TO_CLIENTS);
}

static void test_client_calls(void **state)
{
	(void)state;
	assert_int_equal(run_forked(try_client_calls), 0);
}

static int try_sockets(void)
{
	static const int allowed[] = { AF_INET, AF_INET6, AF_UNIX };
	static const int refused[] = { AF_PACKET, AF_VSOCK, AF_ALG, AF_BLUETOOTH, AF_KEY };
	int fd = -1;

	if (become_client() < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (socket(refused[i], SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
			return (int)i + 10;
	/* the upper half of the register does not matter to the kernel */
	if (syscall(SYS_socket, (1L << 32) | AF_ALG, SOCK_SEQPACKET, 0) >= 0 ||
	    errno != EAFNOSUPPORT)
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		if ((fd = socket(allowed[i], SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 &&
		    errno != EAFNOSUPPORT)
			return (int)i + 20;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 3;
	if (ioctl(fd, SIOCGIFCONF, NULL) == 0 || errno != ENOTTY)
		return 4;
	return 0;
}

static void test_client_sockets(void **state)
{
	(void)state;
	assert_int_equal(run_forked(try_sockets), 0);
}

static int try_files(void)
{
	static const char *const readable[] = { "/etc/nsswitch.conf", "/etc/hosts",
						"/etc/ssl/certs", "/usr/lib" };
	static const char *const hidden[] = { "/etc/passwd",	 "/etc", "/",
					      "/proc/self/maps", "/tmp", "/root",
					      "/dev/null",	 "/sys" };
	struct addrinfo *found = NULL;
	char path[] = "/tmp/test-confine.XXXXXX";
	int file = mkstemp(path);

	if (file < 0 || unlink(path) < 0 || become_client() < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(readable); i++)
		if (open(readable[i], O_RDONLY | O_CLOEXEC) < 0 && errno != ENOENT)
			return (int)i + 20;
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		if (open(hidden[i], O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
			return (int)i + 10;
	if (open("/tmp/test-confine.new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ||
	    errno != EACCES)
		return 2;
	if (open("/etc/hosts", O_WRONLY | O_CLOEXEC) >= 0 || errno != EACCES)
		return 3;
	if (write(file, "x", 1) != 1) /* descriptors that are already open still work */
		return 4;
	return getaddrinfo("localhost", "80", NULL, &found) == 0 ? 0 : 5;
}

static void test_client_files(void **state)
{
	(void)state;
	if (landlock < 0) {
		print_message("the kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(run_forked(try_files), 0);
}

/* The configuration of OpenSSL on Fedora, RHEL and SUSE: the library reads the policy of the system whenever a
 * connection is prepared. */
static int try_policy(void)
{
	static const char *const dirs[] = { "/etc/pki",
					    "/etc/pki/tls",
					    "/etc/crypto-policies",
					    "/etc/crypto-policies/back-ends",
					    "/usr/share/crypto-policies",
					    "/usr/share/crypto-policies/DEFAULT" };
	static const char *const files[] = { "/etc/pki/tls/openssl.cnf",
					     "/usr/share/crypto-policies/DEFAULT/openssl.txt",
					     "/etc/crypto-policies/back-ends/opensslcnf.config" };
	static const char policy[] = "/etc/crypto-policies/back-ends/openssl.config";

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/etc", "tmpfs", 0, NULL) < 0 ||
	    mount("none", "/usr/share", "tmpfs", 0, NULL) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0755) < 0)
			return 2;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (open(files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0)
			return 3;
	if (symlink(files[1], policy) < 0 || become_client() < 0)
		return 4;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (open(files[i], O_RDONLY | O_CLOEXEC) < 0)
			return 5;
	if (open(policy, O_RDONLY | O_CLOEXEC) < 0)
		return 6;
	/* the owner may do that, and it needs no permission to write */
	if (landlock >= 3 && (open(policy, O_RDONLY | O_TRUNC | O_CLOEXEC) >= 0 || errno != EACCES))
		return 7;
	return 0;
}

static void test_client_policy(void **state)
{
	(void)state;
	needs_root();
	assert_int_equal(run_forked(try_policy), 0);
}

/* What Landlock restricts besides files. */
static int try_other_rights(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0test-confine" };
	struct sockaddr_in port = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int tcp, unix_socket;

	if (become_client() < 0)
		return 1;
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unix_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (tcp < 0 || unix_socket < 0)
		return 2;
	if (landlock >= 4 &&
	    (bind(tcp, (struct sockaddr *)&port, sizeof(port)) == 0 || errno != EACCES))
		return 3;
	if (landlock >= 6 &&
	    (connect(unix_socket, (struct sockaddr *)&name, sizeof(name)) == 0 || errno != EPERM))
		return 4;
	return 0;
}

static void test_client_other_rights(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0test-confine" };
	autoclose int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	if (landlock < 4) {
		print_message("the kernel's Landlock restricts only files\n");
		skip();
	}
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(run_forked(try_other_rights), 0);
}

/* As a container runtime does that does not know Landlock. */
static int try_without_landlock(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog fprog = { ARRAY_SIZE(filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) < 0)
		return 1;
	if (become_client() < 0)
		return 2;
	return try_forbidden(FORBIDDEN_TO_CLIENTS);
}

static void test_client_without_landlock(void **state)
{
	(void)state;
	assert_int_equal(run_forked(try_without_landlock), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "confine: the process sees only the layer's root", test_outside },
		{ "confine: files, devices and overlayfs attributes can be created", test_create },
		{ "confine: an unpacker cannot open a device that it has created", test_device },
		{ "confine: an unpacker has no descriptor through which it can open a device",
		  test_descriptors },
		{ "confine: system calls for sockets, mounts and new processes fail with ENOSYS",
		  test_calls },
		{ "confine: a process that reads an archive can use only threads and file "
		  "descriptors that are already open",
		  test_reader },
		{ "confine: a process that reads a stored layer can read its files and change "
		  "nothing",
		  test_layer },
		{ "confine: a process that compiles a profile can use only file descriptors that "
		  "are already open",
		  test_compiler },
		{ "confine: a supervisor can start unpackers, but no programs and no connections",
		  test_supervisor },
		{ "confine: a process that talks to registries cannot start programs or change "
		  "its rights",
		  test_client_calls },
		{ "confine: a process that talks to registries can open sockets of four families "
		  "only",
		  test_client_sockets },
		{ "confine: a process that talks to registries can read the files of the resolver "
		  "and of TLS only, and write none",
		  test_client_files },
		{ "confine: a process that talks to registries can read the system's policy for "
		  "OpenSSL",
		  test_client_policy },
		{ "confine: a process that talks to registries cannot listen on TCP ports or "
		  "connect to "
		  "abstract sockets",
		  test_client_other_rights },
		{ "confine: an outer filter that refuses Landlock leaves the other restrictions",
		  test_client_without_landlock },
	};

	landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
