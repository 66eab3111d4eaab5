package main

var _ = route("census", "all", func(p *Probe) {
	var t []uintptr
	for nr := range uintptr(512) {
		t = append(t, nr)
	}
	a := tryCalls(0, harmlessRows(t), childTimeout)
	b := tryCalls(ownNamespaces, harmlessRows(t), childTimeout)
	for i, e := range a {
		println(i, errnoName(e.errno), e.signal, e.blocked, e.failed != nil, e.exited, "|", errnoName(b[i].errno), b[i].signal, b[i].blocked, b[i].failed != nil, b[i].exited)
	}
})
