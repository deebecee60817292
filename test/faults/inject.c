/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults/inject.c - run a command and inject a fault at one of its system calls
 *
 * What:  counts the system calls of a command and of all its descendants, or
 *        kills all these processes before the Nth system call, or makes the Nth
 *        system call fail. With --alone only the command itself is killed, and
 *        what it started lives on.
 * How:   ptrace, through fork, vfork, clone and exec. Counting starts at a
 *        program's entry point (a breakpoint at AT_ENTRY), also after every
 *        exec, so calls of the dynamic linker are not counted. To make a call
 *        fail, its number is replaced by -1 and its result by -errno. close()
 *        is executed nevertheless, because the kernel closes the descriptor
 *        even if it returns an error.
 * Rules: without --alone, all processes that the command started are dead when
 *        this program ends, however it ends (PTRACE_O_EXITKILL). Every tracee
 *        stops before each system call, so none continues after the decision to
 *        kill: parents die first and cannot react to the death of a child.
 *        With --alone, all other processes are released as soon as the command
 *        has ended. A process whose call was to fail, and has not returned from
 *        it by then, gets ENOSYS.
 *        With --fail-own only calls of the command's own program can fail, not
 *        those of other programs that it executes.
 * Not:   the scenario decides which state is correct afterwards; see run.
 *
 * The report is one line that begins with the outcome:
 *
 *	counted POINTS FAILABLE STATUS		killed at POINT NAME PROCESS
 *	failed at POINT NAME PROCESS ERRNO	missed (the command ended before the point)
 *	hung (killed at the deadline)
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "faults/syscalls.h"

#if defined(__x86_64__)
#define BREAKPOINT	0xccUL /* int3 */
#define BREAKPOINT_MASK 0xffUL
#define BREAKPOINT_PC	1 /* offset of the program counter after the trap */
#define REG_PC		rip
#define REG_RESULT	rax
#elif defined(__aarch64__)
#define BREAKPOINT	0xd4200000UL /* brk #0 */
#define BREAKPOINT_MASK 0xffffffffUL
#define BREAKPOINT_PC	0
#define REG_PC		pc
#define REG_RESULT	regs[0]
#else
#error "only x86-64 and arm64 are supported"
#endif

#define TRACEES_MAX 512
#define REAP_MS	    5000 /* time limit for killed processes to exit */

enum {
	EXIT_HUNG = 124,
	EXIT_USAGE = 125,
	EXIT_SKIP = 77,
	TRAP_SYSCALL = SIGTRAP | 0x80,
};

enum mode { MODE_NONE, MODE_COUNT, MODE_KILL, MODE_FAIL };
enum outcome { OUTCOME_NONE, OUTCOME_KILLED, OUTCOME_FAILED, OUTCOME_HUNG };

struct tracee {
	pid_t pid;
	bool counted;	 /* it has passed its entry point */
	uint64_t entry;	 /* address of the breakpoint, or 0 */
	long entry_word; /* the code that the breakpoint replaced */
	int error;	 /* errno to return from the current call; 0: do not change the result */
};

struct inject {
	/* options */
	enum mode mode;
	unsigned long point;
	int error; /* errno to inject; 0: the default, from syscall_errno() */
	bool list;
	bool alone;
	bool fail_own;
	long timeout_ms;
	long linger_ms;
	FILE *report;

	/* state */
	struct tracee tracees[TRACEES_MAX]; /* oldest first */
	size_t n_tracees;
	pid_t root;
	int root_status;
	unsigned long points;
	unsigned long failable;
	enum outcome outcome;
	char where[128];
	bool killing;
	bool releasing; /* the command has ended, and the others are to live on */
	int64_t deadline_ms;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void __attribute__((noreturn)) die(int status, const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(status);
}

/* ---- tracees -------------------------------------------------------------- */

static struct tracee *tracee_find(struct inject *in, pid_t pid)
{
	for (size_t i = 0; i < in->n_tracees; i++)
		if (in->tracees[i].pid == pid)
			return &in->tracees[i];
	return NULL;
}

static struct tracee *tracee_add(struct inject *in, pid_t pid, bool counted)
{
	struct tracee *t = &in->tracees[in->n_tracees];

	if (in->n_tracees == TRACEES_MAX) {
		errno = ENOSPC;
		die(EXIT_USAGE, "too many processes to trace");
	}
	in->n_tracees++;
	*t = (struct tracee){ .pid = pid, .counted = counted };
	return t;
}

static void tracee_remove(struct inject *in, pid_t pid)
{
	struct tracee *t = tracee_find(in, pid);

	if (!t)
		return;
	in->n_tracees--;
	memmove(t, t + 1, (size_t)(&in->tracees[in->n_tracees] - t) * sizeof(*t));
}

static void poke_entry(const struct tracee *t, long word)
{
	ptrace(PTRACE_POKETEXT, t->pid, (void *)t->entry, (void *)word);
}

/* A tracee can be killed at any time, also while it is stopped. Errors of ptrace() are therefore
 * ignored everywhere: waitpid() reports the end of the tracee. */
static void tracee_resume(struct inject *in, struct tracee *t, int sig)
{
	if (!in->releasing) {
		ptrace(t->counted ? PTRACE_SYSCALL : PTRACE_CONT, t->pid, NULL,
		       (void *)(intptr_t)sig);
		return;
	}
	if (t->entry)
		poke_entry(t, t->entry_word);
	ptrace(PTRACE_DETACH, t->pid, NULL, (void *)(intptr_t)sig);
	tracee_remove(in, t->pid);
}

static void tracee_name(const struct tracee *t, char *buf, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", t->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, size - 1);
		close(fd);
	}
	buf[n > 0 ? n - 1 : 0] = '\0';
}

static bool regs_get(const struct tracee *t, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	return ptrace(PTRACE_GETREGSET, t->pid, (void *)NT_PRSTATUS, &iov) == 0;
}

static void regs_set(const struct tracee *t, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	ptrace(PTRACE_SETREGSET, t->pid, (void *)NT_PRSTATUS, &iov);
}

/* ---- exec ------------------------------------------------------------------ */

static uint64_t entry_address(pid_t pid)
{
	Elf64_auxv_t aux[64];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, aux, sizeof(aux));
	close(fd);
	for (ssize_t i = 0; (i + 1) * (ssize_t)sizeof(aux[0]) <= n; i++)
		if (aux[i].a_type == AT_ENTRY)
			return aux[i].a_un.a_val;
	return 0;
}

/* The program is loaded but has not run: stop it at its entry point. If that is unknown, counting
 * starts here. */
static void handle_exec(struct inject *in, struct tracee *t)
{
	unsigned long former = 0;
	long word;

	/* exec changes the calling thread's ID to that of its process; no event reports the end of
	 * the former ID */
	if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &former) == 0 && (pid_t)former != t->pid) {
		pid_t pid = t->pid;

		tracee_remove(in, (pid_t)former);
		t = tracee_find(in, pid);
	}
	t->error = 0;
	t->entry = entry_address(t->pid);
	t->counted = t->entry == 0;
	if (t->entry) {
		word = ptrace(PTRACE_PEEKTEXT, t->pid, (void *)t->entry, NULL);
		t->entry_word = word;
		poke_entry(t, (long)(((unsigned long)word & ~BREAKPOINT_MASK) | BREAKPOINT));
	}
	tracee_resume(in, t, 0);
}

/* Return: true if this trap was our breakpoint, which is then removed */
static bool remove_entry_breakpoint(struct tracee *t)
{
	struct user_regs_struct regs;

	if (!t->entry || !regs_get(t, &regs) || regs.REG_PC != t->entry + BREAKPOINT_PC)
		return false;
	poke_entry(t, t->entry_word);
	regs.REG_PC = t->entry;
	regs_set(t, &regs);
	t->entry = 0;
	t->counted = true;
	return true;
}

/* ---- system calls ----------------------------------------------------------- */

/* Oldest first, so parents before children. Processes created meanwhile are killed at their first
 * stop. */
static void kill_all(struct inject *in)
{
	for (size_t i = 0; i < in->n_tracees; i++)
		kill(in->tracees[i].pid, SIGKILL);
	in->killing = true;
	in->deadline_ms = now_ms() + REAP_MS;
}

/* Lets all processes live on without this one. */
static void release_all(struct inject *in)
{
	in->releasing = true;
	in->deadline_ms = now_ms() + REAP_MS;
	for (size_t i = 0; i < in->n_tracees; i++)
		ptrace(PTRACE_INTERRUPT, in->tracees[i].pid, NULL, NULL);
}

static void skip_syscall(const struct tracee *t)
{
#if defined(__x86_64__)
	struct user_regs_struct regs;

	if (!regs_get(t, &regs))
		return;
	regs.orig_rax = (unsigned long)-1;
	regs_set(t, &regs);
#else
	int nr = -1;
	struct iovec iov = { &nr, sizeof(nr) };

	ptrace(PTRACE_SETREGSET, t->pid, (void *)NT_ARM_SYSTEM_CALL, &iov);
#endif
}

static void set_syscall_result(struct tracee *t)
{
	struct user_regs_struct regs;

	if (!regs_get(t, &regs))
		return;
	regs.REG_RESULT = (unsigned long)-t->error;
	regs_set(t, &regs);
	t->error = 0;
}

static void list_call(const struct inject *in, const char *name, const char *process, bool can_fail)
{
	char number[24] = "-";

	if (can_fail)
		snprintf(number, sizeof(number), "%lu", in->failable);
	fprintf(in->report, "%6lu %6s %-16s %s\n", in->points, number, name, process);
}

static bool get_program(pid_t pid, struct stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, ret) == 0;
}

/* Whether a tracee runs the program of the command. */
static bool is_own(const struct inject *in, const struct tracee *t)
{
	struct stat own, its;

	return get_program(in->root, &own) && get_program(t->pid, &its) &&
	       own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

/* A write of 1 to an eventfd cannot fail, so no program can do anything about it. */
static bool is_eventfd(const struct tracee *t, uint64_t fd)
{
	char path[64], target[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", t->pid, (int)fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	return strcmp(target, "anon_inode:[eventfd]") == 0;
}

static int errno_to_inject(const struct inject *in, const struct tracee *t, uint64_t nr,
			   const uint64_t args[6])
{
	if ((in->fail_own && !is_own(in, t)) || (nr == SYS_write && is_eventfd(t, args[0])))
		return SYSCALL_CANNOT_FAIL;
	return syscall_errno(nr, args);
}

static void handle_syscall_entry(struct inject *in, struct tracee *t, uint64_t nr,
				 const uint64_t args[6])
{
	int error = errno_to_inject(in, t, nr, args);
	const char *name = syscall_name(nr);
	bool kills, fails;
	char process[32];

	in->points++;
	in->failable += error != SYSCALL_CANNOT_FAIL;
	kills = in->mode == MODE_KILL && in->points == in->point;
	fails = in->mode == MODE_FAIL && error && in->failable == in->point;
	if (!in->list && !kills && !fails)
		return;
	tracee_name(t, process, sizeof(process));
	if (in->list)
		list_call(in, name, process, error != SYSCALL_CANNOT_FAIL);
	if (kills) {
		in->outcome = OUTCOME_KILLED;
		snprintf(in->where, sizeof(in->where), "%lu %s %s", in->point, name, process);
		if (in->alone)
			kill(in->root, SIGKILL);
		else
			kill_all(in);
	} else if (fails) {
		in->outcome = OUTCOME_FAILED;
		t->error = in->error ? in->error : error;
		snprintf(in->where, sizeof(in->where), "%lu %s %s %s", in->point, name, process,
			 strerrorname_np(t->error));
		if (nr != SYS_close) /* close() frees the descriptor even if it fails */
			skip_syscall(t);
	}
}

static void handle_syscall_stop(struct inject *in, struct tracee *t)
{
	struct __ptrace_syscall_info info = { 0 };

	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, (void *)sizeof(info), &info) > 0) {
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			handle_syscall_entry(in, t, info.entry.nr,
					     (const uint64_t *)info.entry.args);
		else if (t->error)
			set_syscall_result(t);
	}
	if (!in->killing)
		tracee_resume(in, t, 0);
}

/* ---- the loop ------------------------------------------------------------- */

static void handle_stop(struct inject *in, struct tracee *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (sig == TRAP_SYSCALL)
		handle_syscall_stop(in, t);
	else if (event == PTRACE_EVENT_EXEC)
		handle_exec(in, t);
	else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) /* stopped by SIGSTOP or similar */
		ptrace(PTRACE_LISTEN, t->pid, NULL, NULL);
	else if (event || (sig == SIGTRAP && remove_entry_breakpoint(t)))
		tracee_resume(in, t, 0);
	else
		tracee_resume(in, t, sig);
}

static void handle_change(struct inject *in, pid_t pid, int status)
{
	struct tracee *t = tracee_find(in, pid);

	if (WIFEXITED(status) || WIFSIGNALED(status)) {
		tracee_remove(in, pid);
		if (pid == in->root) {
			int64_t linger = now_ms() + in->linger_ms;

			in->root_status = status;
			if (!in->killing && linger < in->deadline_ms)
				in->deadline_ms = linger;
			in->root = 0;
			if (in->alone && !in->killing)
				release_all(in);
		}
	} else if (WIFSTOPPED(status)) {
		if (!t)
			t = tracee_add(in, pid, true);
		if (in->killing)
			kill(pid, SIGKILL);
		else
			handle_stop(in, t, status);
	}
}

/* Return: the ID of a process that changed state, 0 at the deadline, -1 if no process is left */
static pid_t wait_change(const struct inject *in, int *ret_status)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		pid_t pid = waitpid(-1, ret_status, __WALL | WNOHANG);
		int64_t left = in->deadline_ms - now_ms();
		struct timespec ts = { left / 1000, left % 1000 * 1000000 };

		if (pid != 0)
			return pid;
		if (left <= 0)
			return 0;
		sigtimedwait(&set, NULL, &ts);
	}
}

static void trace_until_exit(struct inject *in)
{
	for (;;) {
		int status = 0;
		pid_t pid = wait_change(in, &status);

		if (pid > 0)
			handle_change(in, pid, status);
		if (in->releasing && in->n_tracees == 0)
			return;
		if (pid > 0)
			continue;
		if (pid < 0 || in->killing)
			return;
		/* the deadline of the command, or of its background processes */
		if (in->root)
			in->outcome = OUTCOME_HUNG;
		kill_all(in);
	}
}

/* ---- start and end ---------------------------------------------------------- */

/* Tracer and tracee run alternately. A switch on one CPU was measured to be twenty times faster
 * than a wake-up on another CPU. */
static void pin_to_one_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void start_command(struct inject *in, char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC |
			     PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t chld, before;
	int gate[2];

	pin_to_one_cpu();
	sigaction(SIGCHLD, &dfl, NULL);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(gate, O_CLOEXEC) < 0)
		die(EXIT_USAGE, "pipe");
	in->root = fork();
	if (in->root < 0)
		die(EXIT_USAGE, "fork");
	if (in->root == 0) {
		char go;

		close(gate[1]);
		if (read(gate[0], &go, 1) != 1)
			_exit(EXIT_USAGE);
		sigprocmask(SIG_SETMASK, &before, NULL);
		execvp(argv[0], argv);
		die(127, argv[0]);
	}
	close(gate[0]);
	if (ptrace(PTRACE_SEIZE, in->root, NULL, (void *)options) < 0)
		die(EXIT_SKIP, "ptrace is not permitted");
	tracee_add(in, in->root, false);
	in->deadline_ms = now_ms() + in->timeout_ms;
	if (write(gate[1], "", 1) != 1)
		die(EXIT_USAGE, "pipe");
	close(gate[1]);
}

static int exit_status(const struct inject *in)
{
	if (in->outcome == OUTCOME_HUNG)
		return EXIT_HUNG;
	if (WIFSIGNALED(in->root_status))
		return 128 + WTERMSIG(in->root_status);
	return WEXITSTATUS(in->root_status);
}

static void print_report(const struct inject *in)
{
	if (in->outcome == OUTCOME_HUNG)
		fprintf(in->report, "hung after %ld ms %s\n", in->timeout_ms, in->where);
	else if (in->outcome == OUTCOME_KILLED)
		fprintf(in->report, "killed at %s\n", in->where);
	else if (in->outcome == OUTCOME_FAILED)
		fprintf(in->report, "failed at %s\n", in->where);
	else if (in->mode == MODE_COUNT)
		fprintf(in->report, "counted %lu %lu %d\n", in->points, in->failable,
			exit_status(in));
	else
		fprintf(in->report, "missed %lu\n", in->point);
}

static void __attribute__((noreturn)) usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: inject --count | --kill N | --fail N [OPTION...] -- COMMAND [ARG...]\n"
		"  --count        count the system calls, and those that can fail\n"
		"  --kill N       kill COMMAND and its descendants before the Nth system call\n"
		"  --fail N       make the Nth system call that can fail return an error\n"
		"  --alone        kill only COMMAND; what it started lives on when it has ended\n"
		"  --fail-own     calls of other programs that COMMAND executes cannot fail\n"
		"  --errno E      use this errno (such as ENOSPC) instead of the call's default\n"
		"  --list         print each system call: number for --kill, number for --fail,\n"
		"                 name, process\n"
		"  --timeout MS   kill COMMAND after MS milliseconds (default 30000)\n"
		"  --linger MS    kill background processes MS milliseconds after COMMAND ends\n"
		"                 (default 1000)\n"
		"  --report FILE  write the outcome to FILE (default: standard error)\n"
		"Exit status: COMMAND's; 128 + signal if killed; 124: timed out; 125: usage;\n"
		"77: ptrace is not permitted.\n");
	exit(status);
}

static unsigned long parse_number(const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || end == text || n > INT_MAX) {
		fprintf(stderr, "inject: \"%s\" is not a number\n", text);
		exit(EXIT_USAGE);
	}
	return n;
}

static void set_mode(struct inject *in, enum mode mode, const char *point)
{
	if (in->mode != MODE_NONE)
		usage(EXIT_USAGE);
	in->mode = mode;
	in->point = point ? parse_number(point) : 0;
}

static void parse_options(struct inject *in, int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", no_argument, NULL, 'c' },
		{ "kill", required_argument, NULL, 'k' },
		{ "fail", required_argument, NULL, 'f' },
		{ "alone", no_argument, NULL, 'a' },
		{ "fail-own", no_argument, NULL, 'o' },
		{ "errno", required_argument, NULL, 'e' },
		{ "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ "timeout", required_argument, NULL, 't' },
		{ "linger", required_argument, NULL, 'b' },
		{ "report", required_argument, NULL, 'r' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'c')
			set_mode(in, MODE_COUNT, NULL);
		else if (c == 'k')
			set_mode(in, MODE_KILL, optarg);
		else if (c == 'f')
			set_mode(in, MODE_FAIL, optarg);
		else if (c == 'a')
			in->alone = true;
		else if (c == 'o')
			in->fail_own = true;
		else if (c == 'l')
			in->list = true;
		else if (c == 't')
			in->timeout_ms = (long)parse_number(optarg);
		else if (c == 'b')
			in->linger_ms = (long)parse_number(optarg);
		else if (c == 'e' && (in->error = syscall_errno_parse(optarg)) != 0)
			continue;
		else if (c == 'r' && (in->report = fopen(optarg, "we")) != NULL)
			continue;
		else
			usage(c == 'h' ? 0 : EXIT_USAGE);
	}
	if (in->mode == MODE_NONE || optind == argc)
		usage(EXIT_USAGE);
}

int main(int argc, char **argv)
{
	static struct inject in = { .timeout_ms = 30000, .linger_ms = 1000 };

	in.report = stderr;
	parse_options(&in, argc, argv);
	start_command(&in, argv + optind);
	trace_until_exit(&in);
	print_report(&in);
	return exit_status(&in);
}
