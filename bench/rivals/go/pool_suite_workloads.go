package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/iter"
	"github.com/sourcegraph/conc/stream"
)

// P: the benchmarks that goroutine pools publish about themselves. bench/README.md says whose.

func trivial() {}

// jobTimes is what the jobs of timingRun leave behind.
type jobTimes struct {
	inWork, finished, firstNs, sumNs atomic.Int64
}

func (t *jobTimes) run(start time.Time) {
	begun := time.Now()
	t.inWork.Add(1)
	time.Sleep(100 * time.Millisecond)
	t.inWork.Add(-1)
	t.sumNs.Add(time.Since(begun).Nanoseconds())
	if t.finished.Add(1) == 1 {
		t.firstNs.Store(time.Since(start).Nanoseconds())
	}
}

// watch looks every 20 ms, as the article does, until all jobs have finished.
func (t *jobTimes) watch(jobs int64) (most int64) {
	for t.finished.Load() < jobs {
		most = max(most, t.inWork.Load())
		time.Sleep(20 * time.Millisecond)
	}
	return most
}

func timingRun(r request) (metrics, error) {
	const atOnce = 5
	if r.pool == "tunny" {
		return nil, tunnyWaits
	}
	jobs := r.count(100)
	times := jobTimes{}
	var group, watcher sync.WaitGroup
	var most int64
	start := time.Now()
	workers, err := newPool(r.pool, shape{workers: atOnce, queue: jobs})
	if err != nil {
		return nil, err
	}
	job := func() { times.run(start) }
	if r.pool == "goroutines" { // Which have no cap of their own.
		places := make(chan struct{}, atOnce)
		job = func() {
			places <- struct{}{}
			times.run(start)
			<-places
		}
	}
	watcher.Go(func() { most = times.watch(int64(jobs)) })
	group.Add(jobs)
	for range jobs {
		workers.submit(func() {
			job()
			group.Done()
		})
	}
	group.Wait()
	total := milliseconds(time.Since(start))
	watcher.Wait()
	workers.close()
	if most > atOnce {
		return nil, fmt.Errorf("%d jobs were in work at once.", most)
	}
	rounds := (jobs + atOnce - 1) / atOnce
	return metrics{
		"first_ms":     float64(times.firstNs.Load()) / 1e6,
		"average_ms":   float64(times.sumNs.Load()) / 1e6 / float64(jobs),
		"total_ms":     total,
		"overshoot_ms": total - float64(rounds*100),
		"most_wip":     float64(most),
	}, nil
}

// submitSleeps times the submits alone, as the throughput benchmarks of ants do; a library that has
// a queue may put all tasks there.
func submitSleeps(r request, submitters int) (metrics, error) {
	if r.pool == "tunny" {
		return nil, tunnyWaits
	}
	asked := shape{workers: r.count(50_000), queue: r.count(1_000_000)}
	workers, err := newPool(r.pool, asked)
	if err != nil {
		return nil, err
	}
	defer workers.close()
	share := max(1, r.count(1_000_000)/submitters)
	var tasks, all sync.WaitGroup
	task := func() {
		nap()
		tasks.Done()
	}
	tasks.Add(share * submitters)
	elapsed := timed(func() {
		for range submitters {
			all.Go(func() {
				for range share {
					workers.submit(task)
				}
			})
		}
		all.Wait()
	})
	tasks.Wait()
	perSubmit := float64(elapsed.Nanoseconds()) / float64(share*submitters)
	return metrics{"ns_per_submit": perSubmit}, nil
}

// shardedSleeps is the MultiPool of ants, and ten pools by hand of the others.
func shardedSleeps(r request) (metrics, error) {
	if r.pool == "tunny" {
		return nil, tunnyWaits
	}
	count := r.count(1_000_000)
	var group sync.WaitGroup
	task := func() {
		nap()
		group.Done()
	}
	start := time.Now()
	workers, err := newShards(r.pool, 10, max(1, r.count(50_000)/10))
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

func newShards(name string, shards, each int) (runner, error) {
	if name == "ants" {
		return newAntsShards(shards, each)
	}
	pools := make([]runner, shards)
	for i := range pools {
		made, err := newPool(name, shape{workers: each})
		if err != nil {
			return runner{}, err
		}
		pools[i] = made
	}
	next := 0
	submit := func(task func()) {
		pools[next%shards].submit(task)
		next++
	}
	closeAll := func() {
		for _, pool := range pools {
			pool.close()
		}
	}
	return runner{submit: submit, close: closeAll}, nil
}

func newAntsShards(shards, each int) (runner, error) {
	pools, err := ants.NewMultiPool(shards, each, ants.RoundRobin, antsExpiry)
	if err != nil {
		return runner{}, err
	}
	submit := func(task func()) {
		if err := pools.Submit(task); err != nil {
			panic(err)
		}
	}
	release := func() { _ = pools.ReleaseTimeout(time.Second) }
	return runner{submit: submit, close: release}, nil
}

// grid is pond's: so many users share the tasks, each submits its own.
func gridOfSleeps(users int) func(request) (metrics, error) {
	run := grid(users, nap)
	return func(r request) (metrics, error) {
		if r.pool == "tunny" && users < 10_000 {
			return nil, tunnyWaits
		}
		return run(r)
	}
}

func grid(users int, body func()) func(request) (metrics, error) {
	return func(r request) (metrics, error) {
		all := r.count(1_000_000)
		users := min(users, all)
		each := all / users
		var group sync.WaitGroup
		task := func() {
			body()
			group.Done()
		}
		start := time.Now()
		workers, err := newPool(r.pool, shape{workers: r.count(200_000), queue: all})
		if err != nil {
			return nil, err
		}
		group.Add(users * each)
		for range users {
			go func() {
				for range each {
					workers.submit(task)
				}
			}()
		}
		group.Wait()
		elapsed := time.Since(start)
		workers.close()
		return metrics{"ms": milliseconds(elapsed)}, nil
	}
}

func poolStartAndEnd(r request) (metrics, error) {
	var failed error
	perPool := perUnit(r.count(50_000), func(count int) {
		for range count {
			workers, err := newPool(r.pool, shape{workers: 10})
			if err != nil {
				failed = err
				return
			}
			var group sync.WaitGroup
			group.Add(1)
			workers.submit(group.Done)
			group.Wait()
			workers.close()
		}
	})
	return metrics{"ns_per_pool": perPool}, failed
}

func poolTasks(r request) (metrics, error) {
	var failed error
	perTask := perUnit(r.count(1_000_000), func(count int) {
		workers, err := newPool(r.pool, shape{workers: 10})
		if err != nil {
			failed = err
			return
		}
		var group sync.WaitGroup
		done := group.Done
		group.Add(count)
		for range count {
			workers.submit(done)
		}
		group.Wait()
		workers.close()
	})
	return metrics{"ns_per_task": perTask}, failed
}

// streamTasks hands results on in the order of their tasks: by conc's stream, or by hand.
func streamTasks(r request) (metrics, error) {
	const limit = 10
	var next int64
	var wrong error
	take := func(result int64) {
		if result != next {
			wrong = fmt.Errorf("The result %d came in place of %d.", result, next)
		}
		next++
	}
	run := map[string]func(int){
		"conc":       func(count int) { concStream(count, limit, take) },
		"goroutines": func(count int) { streamByHand(count, limit, take) },
	}[r.pool]
	if run == nil {
		return nil, refusal{r.pool + " has no ordered stream."}
	}
	count := r.count(500_000)
	perTask := perUnit(count, func(count int) {
		next = 0
		run(count)
	})
	if wrong == nil {
		wrong = expect("number of results", next, int64(count))
	}
	return metrics{"ns_per_task": perTask}, wrong
}

func concStream(count, limit int, take func(int64)) {
	results := stream.New().WithMaxGoroutines(limit)
	for i := range int64(count) {
		results.Go(func() stream.Callback { return func() { take(i) } })
	}
	results.Wait()
}

func streamByHand(count, limit int, take func(int64)) {
	inOrder := make(chan chan int64, limit)
	var taker sync.WaitGroup
	taker.Go(func() {
		for result := range inOrder {
			take(<-result)
		}
	})
	for i := range int64(count) {
		result := make(chan int64, 1)
		go func() { result <- i }()
		inOrder <- result
	}
	close(inOrder)
	taker.Wait()
}

// loopOver is conc's iter.ForEach, or a goroutine for each element.
func loopOver(elements int) func(request) (metrics, error) {
	return func(r request) (metrics, error) {
		values := make([]int, elements)
		step := func(value *int) { *value++ }
		byHand := func() {
			var group sync.WaitGroup
			group.Add(len(values))
			for i := range values {
				go func() {
					step(&values[i])
					group.Done()
				}()
			}
			group.Wait()
		}
		loop := map[string]func(){
			"conc":       func() { iter.ForEach(values, step) },
			"goroutines": byHand,
		}[r.pool]
		if loop == nil {
			return nil, refusal{r.pool + " has no loop."}
		}
		calls := 0
		full := min(500_000, 5_000_000/max(1, elements))
		perCall := perUnit(r.count(full), func(count int) {
			for range count {
				loop()
			}
			calls += count
		})
		sum := 0
		for _, value := range values {
			sum += value
		}
		return metrics{"ns_per_call": perCall}, expect("sum", int64(sum), int64(calls*elements))
	}
}

// roundTrips is tunny's: one caller that waits for each task. A library without such a call is
// given a task that sends on a channel.
func roundTrips(r request) (metrics, error) {
	workers, err := newPool(r.pool, shape{workers: 10})
	if err != nil {
		return nil, err
	}
	defer workers.close()
	value := 0
	step := func() { value++ }
	call := func() { workers.call(step) }
	if workers.call == nil {
		finished := make(chan struct{}, 1)
		task := func() {
			step()
			finished <- struct{}{}
		}
		call = func() {
			workers.submit(task)
			<-finished
		}
	}
	count := r.count(500_000)
	perCall := perUnit(count, func(count int) {
		value = 0
		for range count {
			call()
		}
	})
	return metrics{"ns_per_call": perCall}, expect("number of calls", int64(value), int64(count))
}
