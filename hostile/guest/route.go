package main

import (
	"errors"
	"fmt"
	"strings"

	"tenwalls.dev/harness/hostile"
)

// routes are the implementations by "attempt/route".
var routes = map[string]func(*Probe){}

// route registers the implementation of one route of the catalogue. It is
// called by a package variable in the attempt's file. An unknown or duplicate
// route, or one that the catalogue says has no inside half, panics at start.
func route(attempt, name string, run func(*Probe)) struct{} {
	a, ok := hostile.Find(attempt)
	if !ok || a.Name != attempt {
		panic(fmt.Sprintf("guest: no attempt %q in the catalogue", attempt))
	}
	if r, ok := a.Route(name); !ok || !r.Inside {
		panic(fmt.Sprintf("guest: attempt %q has no inside route %q", attempt, name))
	}
	key := attempt + "/" + name
	if routes[key] != nil {
		panic(fmt.Sprintf("guest: route %q is registered twice", key))
	}
	routes[key] = run
	return struct{}{}
}

// tryRoute runs one route of the order and claims on descriptor fd,
// with a copy on descriptor copies unless that is -1. A panic of
// the route becomes a failed claim, so that the next route is still tried.
func tryRoute(name string, order hostile.Order, fd uintptr, copies int) {
	attempt, rest, _ := strings.Cut(name, "/")
	p := &Probe{attempt: attempt, route: rest, order: order, fd: int(fd), copies: copies}
	defer func() {
		var missing missingParam
		switch r := recover().(type) {
		case nil:
		case error:
			if errors.As(r, &missing) {
				p.Failed(missing.Error())
				return
			}
			p.Failed("panic: " + r.Error())
		default:
			p.Failed(fmt.Sprint("panic: ", r))
		}
	}()
	run := routes[name]
	if run == nil {
		p.Failed("the payload has no such route")
		return
	}
	if deceitOf(order) == hostile.DeceitUnreached {
		p.pretend()
		return
	}
	run(p)
}
