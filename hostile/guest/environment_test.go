package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func TestLookForVariables(t *testing.T) {
	secret := "twsecret-" + strings.Repeat("0a", 16)
	for _, c := range []struct {
		name      string
		variables []string
		want      hostile.Event
	}{
		{"none", nil, hostile.Stopped},
		{"declared", []string{"LANG=C"}, hostile.Stopped},
		{"of the runtime", []string{"HOME=/nonexistent"}, hostile.Stopped},
		{"not declared", []string{"LANG=C", "TOKEN=x"}, hostile.Happened},
		{"no name", []string{"=x"}, hostile.Happened},
		{"secret where declared", []string{"LANG=" + secret}, hostile.Happened},
		{"secret where the runtime writes", []string{"HOME=/" + secret}, hostile.Happened},
		{"HOME that is no path", []string{"HOME=x"}, hostile.Happened},
		{"HOME that hides more", []string{"HOME=/x KEY=1"}, hostile.Happened},
	} {
		t.Run(c.name, func(t *testing.T) {
			withRoute(t, "credentials/environment", func(p *Probe) { p.lookForVariables("call", c.variables) })
			got := claimsOf(t, hostile.Order{
				Nonce: "n", Routes: []string{"credentials/environment"}, Params: map[string]string{"env": "PATH,LANG"},
			})
			if len(got) != 1 || got[0].Event != c.want {
				t.Errorf("claims: %+v", got)
			}
		})
	}
}

func TestDescriptorsThatLeadSomewhere(t *testing.T) {
	for _, c := range []struct {
		name         string
		d            descriptor
		file, socket bool
	}{
		{"pipe as standard output", descriptor{fd: 1, mode: unix.S_IFIFO, flags: unix.O_WRONLY}, false, false},
		{"null as standard input", descriptor{fd: 0, mode: unix.S_IFCHR}, false, false},
		{"log file as standard error", descriptor{fd: 2, mode: unix.S_IFREG, flags: unix.O_WRONLY | unix.O_APPEND}, false, false},
		{"log file that can be read", descriptor{fd: 2, mode: unix.S_IFREG, flags: unix.O_RDWR}, true, false},
		{"folder as standard input", descriptor{fd: 0, mode: unix.S_IFDIR}, true, false},
		{"socket as standard output", descriptor{fd: 1, mode: unix.S_IFSOCK, flags: unix.O_RDWR}, false, true},
		{"socket beyond", descriptor{fd: 3, mode: unix.S_IFSOCK}, true, true},
		{"pipe beyond", descriptor{fd: 9, mode: unix.S_IFIFO}, true, false},
	} {
		if leadsToFile(c.d) != c.file || leadsToSocket(c.d) != c.socket {
			t.Errorf("%s: file %t, socket %t", c.name, leadsToFile(c.d), leadsToSocket(c.d))
		}
	}
}
