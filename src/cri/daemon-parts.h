/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cri/daemon-parts.h - what daemon.c has in files of their own
 */
#ifndef CRI_DAEMON_PARTS_H
#define CRI_DAEMON_PARTS_H

#include "cri/daemon.h"

/* daemon-config.c; for the loop's thread */
void daemon_reload(struct daemon *d); /* a file with an error changes nothing */
void daemon_render_again(struct daemon *d);
int daemon_pin_images(struct daemon *d, const struct config *c, struct hw_err *e);

/* daemon-metrics.c */
int daemon_start_metrics(struct daemon *d, struct hw_err *e);

#endif
