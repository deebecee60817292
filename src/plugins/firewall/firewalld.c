/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins/firewall/firewalld.c - client for firewalld's D-Bus interface: sources of zones
 *
 * Rules: if the host has a system bus and it cannot be queried, that is an error:
 *        firewalld may be running, and it must know the addresses of all pods.
 */
#include "plugins/firewall/firewalld.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/os/library.h"
#include "base/str.h"
#include "base/time.h"

#define LIBRARY	     "libsystemd.so.0"
#define BUS_SOCKET   "/run/dbus/system_bus_socket"
#define NAME	     "org.fedoraproject.FirewallD1"
#define PATH	     "/org/fedoraproject/FirewallD1"
#define TIMEOUT_US   (20 * 1000000ULL)
#define BUS_RETRY_MS 5

/* As declared in <systemd/sd-bus.h> */
typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct {
	const char *name;
	const char *message;
	int need_free;
} sd_bus_error;

struct firewalld {
	void *handle;
	sd_bus *bus;
	int (*open_system)(sd_bus **ret);
	int (*set_timeout)(sd_bus *bus, uint64_t usec);
	int (*call_method)(sd_bus *bus, const char *destination, const char *path,
			   const char *interface, const char *member, sd_bus_error *ret_error,
			   sd_bus_message **ret_reply, const char *types, ...);
	int (*read)(sd_bus_message *m, const char *types, ...);
	sd_bus_message *(*message_unref)(sd_bus_message *m);
	sd_bus *(*close_unref)(sd_bus *bus);
	void (*error_free)(sd_bus_error *error);
};

static const struct library_symbol symbols[] = {
	{ "sd_bus_open_system", offsetof(struct firewalld, open_system) },
	{ "sd_bus_set_method_call_timeout", offsetof(struct firewalld, set_timeout) },
	{ "sd_bus_call_method", offsetof(struct firewalld, call_method) },
	{ "sd_bus_message_read", offsetof(struct firewalld, read) },
	{ "sd_bus_message_unref", offsetof(struct firewalld, message_unref) },
	{ "sd_bus_flush_close_unref", offsetof(struct firewalld, close_unref) },
	{ "sd_bus_error_free", offsetof(struct firewalld, error_free) },
	{ 0 },
};

/* ---- the bus --------------------------------------------------------------------------------- */

void firewalld_close(struct firewalld *firewalld)
{
	if (!firewalld)
		return;
	if (firewalld->bus)
		firewalld->close_unref(firewalld->bus);
	if (firewalld->handle)
		dlclose(firewalld->handle);
	free(firewalld);
}

/*
 * Calls a method of firewalld or of the bus.
 * @second:     second argument; NULL: the method has only one
 * @ret_answer: receives a boolean reply; NULL: the reply is ignored
 *
 * Return: 0, or a negative errno; e->msg is then the message of the D-Bus error, without context
 */
static int call_method(struct firewalld *firewalld, const char *interface, const char *method,
		       const char *first, const char *second, int *ret_answer, struct hw_err *e)
{
	bool is_firewalld = str_starts(interface, NAME);
	const char *name = is_firewalld ? NAME : interface;
	const char *path = is_firewalld ? PATH : "/org/freedesktop/DBus";
	sd_bus_error error = { 0 };
	sd_bus_message *reply = NULL;
	int r;

	r = firewalld->call_method(firewalld->bus, name, path, interface, method, &error, &reply,
				   second ? "ss" : "s", first, second);
	if (r >= 0 && ret_answer)
		r = firewalld->read(reply, "b", ret_answer);
	if (r < 0)
		err_text(e, r, "%s", str_or(error.message, strerror(-r)));
	firewalld->message_unref(reply);
	firewalld->error_free(&error);
	return r < 0 ? r : 0;
}

int firewalld_open(struct firewalld **ret_firewalld, struct hw_err *e)
{
	AUTO(firewalld_close) struct firewalld *firewalld = NULL;
	int owned = 0;
	int r;

	*ret_firewalld = NULL;
	/* sd-bus and upstream's D-Bus library both use this variable. */
	if (str_empty(getenv("DBUS_SYSTEM_BUS_ADDRESS")) && access(BUS_SOCKET, F_OK) < 0)
		return 0;
	firewalld = mem_new(sizeof(*firewalld));
	r = library_open(LIBRARY, symbols, firewalld, &firewalld->handle, e);
	if (r < 0)
		return err_ctx(e,
			       "check whether firewalld is running (not needed with \"backend\": "
			       "\"iptables\")");
	r = firewalld->open_system(&firewalld->bus);
	if (r == -ECONNREFUSED) {
		/* The bus may be restarting, so try again, but only once and after a short time: on
		 * a host where the socket file exists without a bus, every ADD waits here. */
		time_sleep(BUS_RETRY_MS);
		r = firewalld->open_system(&firewalld->bus);
	}
	if (r == -ENOENT || r == -ECONNREFUSED)
		return 0;
	if (r >= 0)
		r = firewalld->set_timeout(firewalld->bus, TIMEOUT_US);
	if (r < 0)
		return err_set(e, r, "open the system bus");
	r = call_method(firewalld, "org.freedesktop.DBus", "NameHasOwner", NAME, NULL, &owned, e);
	if (r < 0)
		return err_ctx(e, "look for firewalld on the system bus");
	*ret_firewalld = take_ptr(firewalld);
	return owned != 0;
}

/* ---- sources --------------------------------------------------------------------------------- */

/* Error messages of firewalld contain a code in capitals. */
static bool has_code(const struct hw_err *e, const char *const *codes)
{
	for (size_t i = 0; codes[i]; i++)
		if (strstr(e->msg, codes[i]))
			return true;
	return false;
}

static char *format_source(const struct hw_ip *ip)
{
	char text[HW_IP_TEXT];

	return str_printf("%s/%u", hw_ip_format(ip, text), ip_bits(ip));
}

int firewalld_add(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		  struct hw_err *e)
{
	int r;

	static const char *const accepted[] = { "ZONE_ALREADY_SET", NULL };
	autofree char *address = format_source(ip);

	r = call_method(firewalld, NAME ".zone", "addSource", zone, address, NULL, e);
	if (r >= 0 || has_code(e, accepted))
		return 0;
	return err_ctx(e, "failed to add the address %s to %s zone", address, zone);
}

int firewalld_remove(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		     struct hw_err *e)
{
	int r;

	static const char *const accepted[] = { "UNKNOWN_SOURCE", "NOT_ENABLED", "ZONE_CONFLICT",
						"INVALID_ZONE", NULL };
	autofree char *address = format_source(ip);

	r = call_method(firewalld, NAME ".zone", "removeSource", zone, address, NULL, e);
	if (r >= 0 || has_code(e, accepted))
		return 0;
	return err_ctx(e, "failed to remove the address %s from %s zone", address, zone);
}

int firewalld_check(struct firewalld *firewalld, const char *zone, const struct hw_ip *ip,
		    struct hw_err *e)
{
	autofree char *address = format_source(ip);
	int found = 0;
	int r;

	r = call_method(firewalld, NAME ".zone", "querySource", zone, address, &found, e);
	if (r < 0)
		return err_ctx(e, "failed to find the address %s in %s zone", address, zone);
	if (!found)
		return err_text(e, -ENOENT,
				"firewalld zone %s lacks the address %s; hawser-plugin repair "
				"restores it",
				zone, address);
	return 0;
}
