// Package deploy holds what an operator installs beside the program, and the
// tests of it: the daemon's configuration and the units of the service manager.
//
// What its tests do not prove: that the units work under every version of
// systemd. They are read by the one of this host.
package deploy
