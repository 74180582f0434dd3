package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// W8a. The pool lives through all batches; its making and its end are not measured.
func poolBatches(r request) (metrics, error) {
	workers, err := newPool(r.pool, shape{workers: 5, queue: 10})
	if err != nil {
		return nil, err
	}
	defer workers.close()
	var group sync.WaitGroup
	done := group.Done
	perBatch := perUnit(r.count(20_000), func(batches int) {
		for range batches {
			group.Add(batchSize)
			for range batchSize {
				workers.submit(done)
			}
			group.Wait()
		}
	})
	return metrics{"us_per_batch": perBatch / 1e3}, nil
}

// W8b. Mortar's benchmark. The making of the pool is measured, as in W8c: pools that start their
// workers at once would otherwise be ahead of those that start them on demand.
func poolAdds(r request) (metrics, error) {
	var counter atomic.Int64
	count := r.count(1_000_000)
	measured, err := submitAll(r.pool, shape{workers: 20}, count, func() { addMany(&counter) })
	if err != nil {
		return nil, err
	}
	return measured, expect("counter", counter.Load(), int64(count)*addsPerTask)
}

// W8c. The suite of ants.
func poolSleeps(r request) (metrics, error) {
	if r.pool == "tunny" {
		return nil, tunnyWaits
	}
	asked := shape{workers: r.count(50_000)}
	return submitAll(r.pool, asked, r.count(1_000_000), nap)
}

var tunnyWaits = refusal{
	"A tunny submitter waits for its task, so a few submitters run a few sleeps at a time."}

func nap() { time.Sleep(10 * time.Millisecond) }

func submitAll(name string, asked shape, count int, body func()) (metrics, error) {
	var group sync.WaitGroup
	task := func() {
		body()
		group.Done()
	}
	start := time.Now()
	workers, err := newPool(name, asked)
	if err != nil {
		return nil, err
	}
	group.Add(count)
	for range count {
		workers.submit(task)
	}
	group.Wait()
	elapsed := time.Since(start)
	workers.close()
	return metrics{"ms": milliseconds(elapsed)}, nil
}

// W8d. Every submitter hands over its share of the tasks; the wait is for the tasks.
func poolNoOps(r request, submitters int) (metrics, error) {
	const capacity = 1000
	workers, err := newPool(r.pool, shape{workers: capacity, queue: capacity})
	if err != nil {
		return nil, err
	}
	defer workers.close()
	var group sync.WaitGroup
	done := group.Done
	perShare := perUnit(max(1, r.count(2_000_000)/submitters), func(share int) {
		group.Add(share * submitters)
		for range submitters {
			go func() {
				for range share {
					workers.submit(done)
				}
			}()
		}
		group.Wait()
	})
	return metrics{"ns_per_task": perShare / float64(submitters)}, nil
}
