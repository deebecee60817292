/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci/test-oom-score.c - the lowest oom_score_adj that a process may set
 *
 * How:   whether the value may be set is asked of the kernel, in a child process. With
 *        CAP_SYS_RESOURCE, which root may lack, it runs in test/uml/oci.bats.
 */
#include "oci/oom-score.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

static bool may_set(int score)
{
	autoclose int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && dprintf(fd, "%d", score) > 0;
}

/* In a child: oom_score_adj is @own; clamps @wanted, and sets what comes out. Return: the result
 * + 1000 (0 to 2000); 3000 if it could not be set; 4000 if @own could not be set */
static int clamped(int own, int wanted)
{
	int answer[2], score = 0;
	pid_t pid;

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct hw_err e;

		if (!may_set(own))
			score = 4000;
		else if (oom_score_clamp(wanted, &score, &e) < 0 || !may_set(score))
			score = 3000;
		else
			score += 1000;
		_exit(write(answer[1], &score, sizeof(score)) != sizeof(score));
	}
	assert_int_equal(read(answer[0], &score, sizeof(score)), sizeof(score));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(answer[0]);
	close(answer[1]);
	return score;
}

static void higher_scores_are_kept(void **state)
{
	(void)state;
	assert_int_equal(clamped(100, 500), 1500);
	assert_int_equal(clamped(100, 1000), 2000);
}

static void lower_scores_can_be_set(void **state)
{
	int score = clamped(100, -998);

	(void)state;
	assert_true(score == 1100 || score == 2); /* without and with the capability */
}

static void capability_allows_lower_scores(void **state)
{
	int score = clamped(-1, -998);

	(void)state;
	if (score == 4000) {
		print_message("lowering oom_score_adj needs CAP_SYS_RESOURCE\n");
		skip();
	}
	assert_int_equal(score, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "oom-score: a score above the own one is kept", higher_scores_are_kept, NULL,
		  NULL, NULL },
		{ "oom-score: the kernel accepts the result", lower_scores_can_be_set, NULL, NULL,
		  NULL },
		{ "oom-score: with CAP_SYS_RESOURCE every score is kept",
		  capability_allows_lower_scores, NULL, NULL, NULL },
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
