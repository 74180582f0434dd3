package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Jeffail/tunny"
	"github.com/alitto/pond/v2"
	"github.com/gammazero/workerpool"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/pool"
)

// shape is what a workload asks of a pool. A queue of 0 means the library's own default.
type shape struct {
	workers int
	queue   int
}

// runner is the part of a pool that the workloads use: hand over a task, and later tear down.
// call waits for the task; it is nil where a library has no such call of its own.
type runner struct {
	submit func(task func())
	call   func(task func())
	close  func()
}

type poolMaker struct {
	name string
	make func(shape) (runner, error)
}

var poolMakers = []poolMaker{
	{"goroutines", plainGoroutines},
	{"channel", newChannelPool},
	{"ants", newAnts},
	{"gammazero", newGammazero},
	{"tunny", newTunny},
	{"pond", newPond},
	{"conc", newConc},
}

// absentPools are said aloud, so that a missing pool is a line and not a silent gap.
var absentPools = map[string]string{
	"mortar": "not in this build: the Go module proxy refuses to serve it.",
}

func poolNames() []string {
	names := make([]string, 0, len(poolMakers))
	for _, maker := range poolMakers {
		names = append(names, maker.name)
	}
	return names
}

func isPoolWorkload(name string) bool {
	return strings.HasPrefix(name, "W8") || strings.HasPrefix(name, "P_")
}

func newPool(name string, asked shape) (runner, error) {
	for _, maker := range poolMakers {
		if maker.name == name {
			return maker.make(asked)
		}
	}
	return runner{}, refusal{fmt.Sprintf("The Go rival does not know the pool %q.", name)}
}

func plainGoroutines(shape) (runner, error) {
	return runner{submit: func(task func()) { go task() }, close: func() {}}, nil
}

// newChannelPool is what a Go programmer writes without a library: all workers start at once and
// read one buffered channel.
func newChannelPool(asked shape) (runner, error) {
	queue := asked.queue
	if queue == 0 {
		queue = asked.workers
	}
	tasks := make(chan func(), queue)
	var group sync.WaitGroup
	for range asked.workers {
		group.Go(func() {
			for task := range tasks {
				task()
			}
		})
	}
	closePool := func() {
		close(tasks)
		group.Wait()
	}
	return runner{submit: func(task func()) { tasks <- task }, close: closePool}, nil
}

// The option of ants' own benchmarks, so that no worker is purged in the middle of a measurement.
var antsExpiry = ants.WithExpiryDuration(10 * time.Second)

func newAnts(asked shape) (runner, error) {
	workers, err := ants.NewPool(asked.workers, antsExpiry)
	if err != nil {
		return runner{}, err
	}
	submit := func(task func()) {
		// A blocking pool refuses a task only after Release, which comes after the last one.
		if err := workers.Submit(task); err != nil {
			panic(err)
		}
	}
	return runner{submit: submit, close: workers.Release}, nil
}

func newGammazero(asked shape) (runner, error) {
	workers := workerpool.New(asked.workers)
	return runner{submit: workers.Submit, call: workers.SubmitWait, close: workers.StopWait}, nil
}

// newTunny submits synchronously, the only way that tunny has: a submitter waits for each task.
func newTunny(asked shape) (runner, error) {
	workers := tunny.NewCallback(asked.workers)
	process := func(task func()) { workers.Process(task) }
	return runner{submit: process, call: process, close: workers.Close}, nil
}

func newPond(asked shape) (runner, error) {
	options := []pond.Option{}
	if asked.queue > 0 {
		options = append(options, pond.WithQueueSize(asked.queue))
	}
	workers := pond.NewPool(asked.workers, options...)
	submit := func(task func()) {
		// Go is pond's cheapest call: no future is made. It fails only after the pool has stopped.
		if err := workers.Go(task); err != nil {
			panic(err)
		}
	}
	call := func(task func()) {
		if err := workers.Submit(task).Wait(); err != nil {
			panic(err)
		}
	}
	return runner{submit: submit, call: call, close: workers.StopAndWait}, nil
}

func newConc(asked shape) (runner, error) {
	workers := pool.New().WithMaxGoroutines(asked.workers)
	return runner{submit: workers.Go, close: workers.Wait}, nil
}
