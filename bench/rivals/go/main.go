// The Go side of the comparison: one binary, one workload a process, one JSON line of results.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

const (
	exitFailed  = 1
	exitRefused = 3
)

// request is what the command line asks for, after the workload's name.
type request struct {
	workers int
	scale   float64
	pool    string
}

// count scales a workload's full count; a smoke run still does at least one of everything.
func (r request) count(full int) int {
	return max(1, int(float64(full)*r.scale))
}

// metrics maps a metric's name to its value; the names are listed in bench/README.md.
type metrics map[string]float64

// refusal says why a combination makes no sense here; it ends the process with exitRefused.
type refusal struct{ reason string }

func (r refusal) Error() string { return r.reason }

type workload struct {
	name string
	run  func(request) (metrics, error)
}

var workloads = []workload{
	{"W1", spawnBatches},
	{"W1b_adds", floodAdds},
	{"W1b_empty", floodEmpty},
	{"adds_alone", addsAlone},
	{"W2", yieldPair},
	{"W3_pingpong", pingPong},
	{"W3_buffered", bufferedItems},
	{"W4", contendedMutex},
	{"W5", skynet},
	{"W6_100k", func(r request) (metrics, error) { return parkAndWake(r.count(100_000)) }},
	{"W6_1m", func(r request) (metrics, error) { return parkAndWake(r.count(1_000_000)) }},
	{"W7_100k", func(r request) (metrics, error) { return sleepers(r.count(100_000), 10) }},
	{"W7_1m", func(r request) (metrics, error) { return sleepers(r.count(1_000_000), 1) }},
	{"W7b", deadlinesMet},
	{"W8a", poolBatches},
	{"W8b", poolAdds},
	{"W8c", poolSleeps},
	{"W8d_1", func(r request) (metrics, error) { return poolNoOps(r, 1) }},
	{"W8d_8", func(r request) (metrics, error) { return poolNoOps(r, 8) }},
	{"W10", forkJoinFib},
	{"W11_idle", wakeIdle},
	{"W11_busy", wakeBusy},
	{"W11_mixed", mixedLoad},
	{"W12_ready", selectReady},
	{"W12_becomes_ready", selectBecomesReady},
	{"W13_100", fairTurns(100, byYield)},
	{"W13_1k", fairTurns(1_000, byYield)},
	{"W13_4k", fairTurns(4_000, byYield)},
	{"W13_10k", fairTurns(10_000, byYield)},
	{"W13_timer_1k", fairTurns(1_000, byTimer)},
	{"W13_channel_1k", fairTurns(1_000, byChannel)},
	{"W13_thread_1k", fairTurns(1_000, byThread)},
	{"W13_socket_1k", fairTurns(1_000, bySocket)},
	{"W14_ticker", lightSleeps(1, time.Millisecond)},
	{"W14_sleepers", lightSleeps(100, 10*time.Millisecond)},
	{"P_timing", timingRun},
	{"P_submit", func(r request) (metrics, error) { return submitSleeps(r, 1) }},
	{"P_submitters", func(r request) (metrics, error) { return submitSleeps(r, r.workers) }},
	{"P_shards", shardedSleeps},
	{"P_grid_1x1m_sleep", gridOfSleeps(1)},
	{"P_grid_1x1m_trivial", grid(1, trivial)},
	{"P_grid_100x10k_sleep", gridOfSleeps(100)},
	{"P_grid_100x10k_trivial", grid(100, trivial)},
	{"P_grid_1kx1k_sleep", gridOfSleeps(1_000)},
	{"P_grid_1kx1k_trivial", grid(1_000, trivial)},
	{"P_grid_10kx100_sleep", gridOfSleeps(10_000)},
	{"P_grid_10kx100_trivial", grid(10_000, trivial)},
	{"P_grid_1mx1_sleep", gridOfSleeps(1_000_000)},
	{"P_grid_1mx1_trivial", grid(1_000_000, trivial)},
	{"P_start", poolStartAndEnd},
	{"P_task", poolTasks},
	{"P_stream", streamTasks},
	{"P_each_0", loopOver(0)},
	{"P_each_1", loopOver(1)},
	{"P_each_10", loopOver(10)},
	{"P_each_100", loopOver(100)},
	{"P_each_1000", loopOver(1_000)},
	{"P_each_10000", loopOver(10_000)},
	{"P_each_100000", loopOver(100_000)},
	{"P_round_trip", roundTrips},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--list" {
		printLine(map[string]any{"subject": "go", "workloads": workloadNames(), "pools": poolNames(),
			"absent": absentPools})
		return
	}
	name, asked := parseArguments(os.Args[1:])
	index := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if index < 0 {
		fail(exitRefused, fmt.Sprintf("The Go rival does not know the workload %q.", name))
	}
	if asked.pool != "" && !isPoolWorkload(name) {
		fail(exitRefused, fmt.Sprintf("%s is not a pool workload: it takes no --pool.", name))
	}
	if asked.pool == "" && isPoolWorkload(name) {
		asked.pool = "goroutines"
	}
	runtime.GOMAXPROCS(asked.workers)
	measured, err := workloads[index].run(asked)
	if refused := (refusal{}); errors.As(err, &refused) {
		fail(exitRefused, refused.reason)
	} else if err != nil {
		fail(exitFailed, err.Error())
	}
	measured["peak_rss_bytes"] = float64(statusBytes("VmHWM"))
	measured["cpu_ms"] = cpuMilliseconds()
	printLine(map[string]any{"subject": "go", "workload": name, "workers": asked.workers,
		"pool": asked.pool, "metrics": measured})
}

// parseArguments expects the workload first: package flag stops at the first word without a dash.
func parseArguments(arguments []string) (string, request) {
	asked := request{}
	flags := flag.NewFlagSet("weft_rivals WORKLOAD", flag.ExitOnError)
	flags.IntVar(&asked.workers, "workers", 1, "GOMAXPROCS")
	flags.Float64Var(&asked.scale, "scale", 1, "factor on every count")
	flags.StringVar(&asked.pool, "pool", "", "goroutine pool of a W8 or P workload")
	if len(arguments) == 0 {
		fail(exitFailed, "Usage: weft_rivals WORKLOAD [--workers N] [--scale F] [--pool NAME].")
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		fail(exitFailed, err.Error())
	}
	if asked.workers < 1 || asked.scale <= 0 || flags.NArg() > 0 {
		fail(exitFailed, "Workers and scale are positive, and nothing else may follow them.")
	}
	return arguments[0], asked
}

func workloadNames() []string {
	names := make([]string, 0, len(workloads))
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

func printLine(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		fail(exitFailed, err.Error())
	}
	fmt.Println(string(line))
}

func fail(code int, sentence string) {
	fmt.Fprintln(os.Stderr, sentence)
	os.Exit(code)
}
