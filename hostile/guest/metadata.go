package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

var (
	_ = route("metadata", "aws", fetchFrom("169.254.169.254:80"))
	_ = route("metadata", "aws-ipv6", fetchFrom("[fd00:ec2::254]:80"))
	_ = route("metadata", "mapped", fetchFrom("[::ffff:169.254.169.254]:80"))
	_ = route("metadata", "ecs", fetchFrom("169.254.170.2:80"))
	_ = route("metadata", "alibaba", fetchFrom("100.100.100.200:80"))
	_ = route("metadata", "azure", fetchFrom("168.63.129.16:80"))
	_ = route("metadata", "oracle", fetchFrom("192.0.0.192:80"))
	_ = route("metadata", "by-name", byName)
	_ = route("metadata", "proxy", throughProxy)
)

func fetchFrom(addr string) func(*Probe) {
	return func(p *Probe) { p.fetch(address(addr), "/latest/meta-data/", addr) }
}

// fetch asks for target over HTTP, with the headers that the clouds insist on.
func (p *Probe) fetch(from netip.AddrPort, target, host string) {
	f, call, ok := p.dial(from)
	if !ok {
		return
	}
	defer f.Close() //nolint:errcheck // the claim is made
	n, note := exchange(f, "GET "+target+" HTTP/1.0\r\nHost: "+host+"\r\nMetadata-Flavor: Google\r\nMetadata: true\r\n\r\n")
	p.Happened(call+", GET "+target, n, note)
}

// byName asks the name server for the metadata service and goes where it says.
func byName(p *Probe) {
	name := p.ParamOr("name", "metadata.google.internal")
	resolver := address(p.Param("resolver"))
	s := socketSpec{"AF_INET, SOCK_DGRAM", unix.AF_INET, unix.SOCK_DGRAM, 0}
	if !resolver.Addr().Is4() {
		s = socketSpec{"AF_INET6, SOCK_DGRAM", unix.AF_INET6, unix.SOCK_DGRAM, 0}
	}
	fd, ok := p.send(s, resolver, query(strings.TrimSuffix(name, ".")+"."))
	if !ok {
		return
	}
	call := "ask " + resolver.String() + " for " + name
	addr, err := answerFrom(fd)
	if err != nil {
		p.unreached(call, unix.SYS_READ, err, byRoutes(resolver.Addr()))
		return
	}
	p.Reading(fmt.Sprintf("%s is %s, says %s", name, addr, resolver))
	p.fetch(netip.AddrPortFrom(addr, 80), "/computeMetadata/v1/", name)
}

// answerFrom reads the answer to a query and closes the socket.
func answerFrom(fd int) (netip.Addr, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close() //nolint:errcheck // read only
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return netip.Addr{}, fmt.Errorf("wait for the answer: %w", err)
	}
	buf := make([]byte, 512)
	n, err := f.Read(buf)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("read the answer: %w", err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf[:n]); err != nil {
		return netip.Addr{}, fmt.Errorf("read the answer: %w", err)
	}
	for _, a := range m.Answers {
		if a, ok := a.Body.(*dnsmessage.AResource); ok {
			return netip.AddrFrom4(a.A), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the answer %s has no address", m.RCode)
}

// throughProxy asks the proxy of the order, or that a variable names, for the
// metadata service.
func throughProxy(p *Probe) {
	proxy := p.ParamOr("proxy", proxyVariable())
	if proxy == "" {
		panic(missingParam("proxy"))
	}
	p.fetch(address(proxy), "http://169.254.169.254/latest/meta-data/", "169.254.169.254")
}

// proxyVariable returns the address that the usual variables name; "" when none does.
func proxyVariable() string {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if u, err := url.Parse(os.Getenv(name)); err == nil && u.Host != "" {
			return u.Host
		}
	}
	return ""
}
