#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
test/firewalld.py FILE: plays firewalld's part on the system bus, for test/firewall.bats

What:  the three calls that the firewall plugin makes, answered as firewalld 1.3 answers them; the
       zones' sources are in FILE, "ZONE SOURCE" a line. The zone "closed" denies everything.
"""
import pathlib
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.fedoraproject.FirewallD1"
ZONES = ("trusted", "public", "closed")


class Refused(dbus.DBusException):
    _dbus_error_name = NAME + ".Exception"


class Firewalld(dbus.service.Object):
    def __init__(self, bus, path):
        super().__init__(bus, "/org/fedoraproject/FirewallD1")
        self.file = pathlib.Path(path)
        self.zone_of = {}

    def keep(self):
        self.file.write_text("".join("%s %s\n" % (zone, source)
                                     for source, zone in sorted(self.zone_of.items())))

    def look(self, zone, source):
        if zone not in ZONES:
            raise Refused("INVALID_ZONE: " + zone)
        if zone == "closed":
            raise Refused("NOT_AUTHORIZED: " + zone)
        return self.zone_of.get(source)

    @dbus.service.method(NAME + ".zone", in_signature="ss", out_signature="s")
    def addSource(self, zone, source):
        there = self.look(zone, source)
        if there == zone:
            raise Refused("ZONE_ALREADY_SET: '%s' already bound to '%s'" % (source, zone))
        if there:
            raise Refused("ZONE_CONFLICT: '%s' already bound to '%s'" % (source, there))
        self.zone_of[source] = zone
        self.keep()
        return zone

    @dbus.service.method(NAME + ".zone", in_signature="ss", out_signature="s")
    def removeSource(self, zone, source):
        there = self.look(zone, source)
        if not there:
            raise Refused("UNKNOWN_SOURCE: '%s' is not in any zone" % source)
        if there != zone:
            raise Refused("ZONE_CONFLICT: remove_source(%s, %s): zoi='%s'" % (zone, source, there))
        del self.zone_of[source]
        self.keep()
        return zone

    @dbus.service.method(NAME + ".zone", in_signature="ss", out_signature="b")
    def querySource(self, zone, source):
        return self.look(zone, source) == zone


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
system = dbus.SystemBus()
firewalld = Firewalld(system, sys.argv[1])
name = dbus.service.BusName(NAME, system)
firewalld.keep()
GLib.MainLoop().run()
