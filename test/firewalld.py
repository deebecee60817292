#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
test/firewalld.py FILE - simulates firewalld on the system bus, for tests of the firewall plugin

What:  the three methods that the firewall plugin calls, with the replies and errors of firewalld
       1.3.
       The sources of the zones are written to FILE, one "ZONE SOURCE" per line. The zone "closed"
       rejects every call.
"""
import pathlib
import sys

import dbus
import dbus.mainloop.glib
import dbus.service
from gi.repository import GLib

NAME = "org.fedoraproject.FirewallD1"
ZONES = ("trusted", "public", "closed")


class FirewalldError(dbus.DBusException):
    _dbus_error_name = NAME + ".Exception"


class Firewalld(dbus.service.Object):
    def __init__(self, bus, path):
        super().__init__(bus, "/org/fedoraproject/FirewallD1")
        self.file = pathlib.Path(path)
        self.zone_of = {}

    def save(self):
        self.file.write_text("".join("%s %s\n" % (zone, source)
                                     for source, zone in sorted(self.zone_of.items())))

    def find_zone(self, zone, source):
        """Checks the zone of a call. Returns the zone that contains the source, or None."""
        if zone not in ZONES:
            raise FirewalldError("INVALID_ZONE: " + zone)
        if zone == "closed":
            raise FirewalldError("NOT_AUTHORIZED: " + zone)
        return self.zone_of.get(source)

    @dbus.service.method(NAME + ".zone", in_signature="ss", out_signature="s")
    def addSource(self, zone, source):
        current = self.find_zone(zone, source)
        if current == zone:
            raise FirewalldError("ZONE_ALREADY_SET: '%s' already bound to '%s'" % (source, zone))
        if current:
            raise FirewalldError("ZONE_CONFLICT: '%s' already bound to '%s'" % (source, current))
        self.zone_of[source] = zone
        self.save()
        return zone

    @dbus.service.method(NAME + ".zone", in_signature="ss", out_signature="s")
    def removeSource(self, zone, source):
        current = self.find_zone(zone, source)
        if not current:
            raise FirewalldError("UNKNOWN_SOURCE: '%s' is not in any zone" % source)
        if current != zone:
            raise FirewalldError("ZONE_CONFLICT: remove_source(%s, %s): zoi='%s'" %
                                 (zone, source, current))
        del self.zone_of[source]
        self.save()
        return zone

    @dbus.service.method(NAME + ".zone", in_signature="ss", out_signature="b")
    def querySource(self, zone, source):
        return self.find_zone(zone, source) == zone


dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
system = dbus.SystemBus()
firewalld = Firewalld(system, sys.argv[1])
name = dbus.service.BusName(NAME, system)
firewalld.save()
GLib.MainLoop().run()
