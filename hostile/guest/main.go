// Go names its mappings by prctl(2), which the deny-all filter refuses; where
// the filter ends its caller, no program that does so would start.
//go:debug decoratemappings=0

// Command guest is the payload: one static program that runs inside the
// sandbox, makes the attempts it is ordered to make, and says what came back.
// It is run as
//
//	/tenwalls/guest ORDER
//
// where ORDER is a hostile.Order in JSON. Every line it prints on standard
// output that is a hostile.Claim comes from here; a route may print other bytes
// where printing is the attempt.
//
// What this program does not prove: anything. It runs inside a sandbox that may
// be broken, so its claims are data and never the authority where the host can
// look. It proves even less about a place: a number (EPERM) names no wall, so
// each route shows in the claim's note how it knows which wall answered, and
// says hostile.Unknown where it does not know.
//
// Parameters of the routes in this program, by their names in Order.Params
// (a route that needs a missing one ends with a failed claim):
//
//	claims_file              path in scratch that gets a copy of each claim; none when missing
//	linger_ms                how long the payload stays after the last route; not at all when missing
//	scratch                  the writable folder; "/scratch" when missing
//	canary                   path of the canary; credentials routes, each has its own when missing
//	env                      names of the variables the job declared, joined by commas; none when missing
//	addr4, addr6             "192.0.2.1:80", "[2001:db8::1]:80"; connection routes
//	resolver                 "192.0.2.1:53"; connection/dns and metadata/by-name
//	name                     the name asked for by metadata/by-name; "metadata.google.internal" when missing
//	proxy                    "192.0.2.1:3128"; metadata/proxy, "HTTP_PROXY" and its like are read when missing
//	unix_path, unix_abstract host listeners; connection/unix-path, connection/unix-abstract
//	open_dir                 the folder of mode 0777 on a read-only mount; "/tenwalls/open" when missing
//	inputs_dir               a folder of mode 0777 among the inputs; outside/inputs-* need it, the walks of outside do without
//	uid, hostname            what the profile gives; "65534" and "sandbox" when missing
//	suid                     path of a copy of the payload, mode 4755 of root; privileges/no-new-privs and privileges/set-uid-behind
//	deceit, expected:A/R     a mutated payload, see deceit.go; honest when missing
//	hold_ms                  how long a processes or disk route keeps what is beyond the grant; 0 when missing
//	per_parent               how many children one task of a processes route makes at most; no limit when missing
//	neighbour_name           a name that only the neighbour's files bear; neighbour/walk and neighbour/processes
//	neighbour_path           host path of the neighbour's folder; neighbour/known-path
//	neighbour_secret_sha256  digest in hex of the neighbour's secret; neighbour/walk
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tenwalls.dev/harness/hostile"
)

func main() {
	// RLIMIT_NPROC counts threads: one processor keeps the runtime at a handful.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(50)
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: guest ORDER")
		os.Exit(2)
	}
	// The set-uid copy does nothing else, whoever runs it and with what order.
	if os.Args[1] == asSetUID || elevated() {
		if err := sayEffectiveUID(); err != nil {
			fmt.Fprintln(os.Stderr, "guest:", err)
			os.Exit(1)
		}
		return
	}
	order, err := hostile.ParseOrder(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(2)
	}
	if deceitOf(order) == hostile.DeceitIdle {
		linger(order)
		return
	}
	copies, err := openCopies(order)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
	for _, name := range order.Routes {
		tryRoute(name, order, os.Stdout.Fd(), copies)
	}
	linger(order)
}

// openCopies opens the file in scratch that gets a copy of each claim, so that
// the harness knows of an act while the job runs; -1 when none is asked for.
func openCopies(order hostile.Order) (int, error) {
	file := order.Params["claims_file"]
	if file == "" {
		return -1, nil
	}
	fd, err := unix.Open(file, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", file, err)
	}
	return fd, nil
}

// linger keeps the job there for a moment, so that the host can look at it.
func linger(order hostile.Order) {
	ms, err := strconv.Atoi(order.Params["linger_ms"])
	if err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
}
