package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	batchSize   = 100
	addsPerTask = 100
)

// W1. A batch is joined before the next one starts, so at most a hundred goroutines are alive.
func spawnBatches(r request) (metrics, error) {
	batches := max(1, r.count(2_000_000)/batchSize)
	var group sync.WaitGroup
	done := group.Done
	perBatch := perUnit(batches, func(batches int) {
		for range batches {
			group.Add(batchSize)
			for range batchSize {
				go done()
			}
			group.Wait()
		}
	})
	return metrics{"ns_per_fiber": perBatch / batchSize}, nil
}

// W1b, both forms: all goroutines are spawned in one loop, and only then joined.
func flood(count int, body func()) metrics {
	var group sync.WaitGroup
	task := func() {
		body()
		group.Done()
	}
	elapsed := timed(func() {
		group.Add(count)
		for range count {
			go task()
		}
		group.Wait()
	})
	return metrics{"ms": milliseconds(elapsed)}
}

func floodAdds(r request) (metrics, error) {
	var counter atomic.Int64
	count := r.count(1_000_000)
	measured := flood(count, func() { addMany(&counter) })
	return measured, expect("counter", counter.Load(), int64(count)*addsPerTask)
}

func floodEmpty(r request) (metrics, error) {
	return flood(r.count(1_000_000), func() {}), nil
}

// addsAlone is the floor of W1b_adds and W8b: their adds without any goroutine around them.
func addsAlone(r request) (metrics, error) {
	var counter atomic.Int64
	count := r.count(1_000_000)
	elapsed := timed(func() {
		for range count {
			addMany(&counter)
		}
	})
	measured := metrics{"ms": milliseconds(elapsed)}
	return measured, expect("counter", counter.Load(), int64(count)*addsPerTask)
}

func addMany(counter *atomic.Int64) {
	for range addsPerTask {
		counter.Add(1)
	}
}

// W2. The row is defined on one worker: with more, the two would not have to switch at all.
func yieldPair(r request) (metrics, error) {
	if r.workers != 1 {
		return nil, refusal{"W2 is defined on one worker."}
	}
	perRound := perUnit(r.count(5_000_000), func(rounds int) {
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() {
				for range rounds {
					runtime.Gosched()
				}
			})
		}
		group.Wait()
	})
	return metrics{"ns_per_switch": perRound / 2}, nil
}

func pingPong(r request) (metrics, error) {
	ping, pong := make(chan int), make(chan int)
	go func() {
		for value := range ping {
			pong <- value
		}
	}()
	perTrip := perUnit(r.count(1_000_000), func(trips int) {
		for trip := range trips {
			ping <- trip
			<-pong
		}
	})
	close(ping)
	return metrics{"ns_per_round_trip": perTrip}, nil
}

func bufferedItems(r request) (metrics, error) {
	var sum int64
	count := r.count(5_000_000)
	perItem := perUnit(count, func(items int) {
		sum = 0
		channel := make(chan int, 128)
		var group sync.WaitGroup
		group.Go(func() {
			for item := range channel {
				sum += int64(item)
			}
		})
		for item := range items {
			channel <- item
		}
		close(channel)
		group.Wait()
	})
	return metrics{"ns_per_item": perItem}, expect("sum", sum, int64(count)*int64(count-1)/2)
}

func contendedMutex(r request) (metrics, error) {
	const fibers = 8
	var mutex sync.Mutex
	var counter int64
	each := r.count(500_000)
	perRound := perUnit(each, func(each int) {
		counter = 0
		var group sync.WaitGroup
		for range fibers {
			group.Go(func() {
				for range each {
					mutex.Lock()
					counter++
					mutex.Unlock()
				}
			})
		}
		group.Wait()
	})
	return metrics{"ns_per_op": perRound / fibers}, expect("counter", counter, int64(each)*fibers)
}

// W5. The leaves are a power of ten, so that a scaled tree is still 10-ary everywhere.
func skynet(r request) (metrics, error) {
	leaves := 1
	for leaves*10 <= r.count(1_000_000) {
		leaves *= 10
	}
	var sum int64
	elapsed := timed(func() {
		result := make(chan int64)
		go skynetNode(result, 0, int64(leaves))
		sum = <-result
	})
	wanted := int64(leaves) * int64(leaves-1) / 2
	return metrics{"ms": milliseconds(elapsed)}, expect("sum", sum, wanted)
}

func skynetNode(result chan<- int64, first, leaves int64) {
	if leaves == 1 {
		result <- first
		return
	}
	const children = 10
	sums := make(chan int64)
	for child := range int64(children) {
		go skynetNode(sums, first+child*(leaves/children), leaves/children)
	}
	var sum int64
	for range children {
		sum += <-sums
	}
	result <- sum
}

// W6. A goroutine counts itself in just before it parks; the pause lets the last ones really park
// before the memory is read. It is outside both times.
func parkAndWake(count int) (metrics, error) {
	gate := make(chan struct{})
	var group sync.WaitGroup
	var counted atomic.Int64
	parked := func() {
		counted.Add(1)
		<-gate
		group.Done()
	}
	before := statusBytes("VmRSS")
	create := timed(func() {
		group.Add(count)
		for range count {
			go parked()
		}
		for counted.Load() < int64(count) {
			runtime.Gosched()
		}
	})
	time.Sleep(200 * time.Millisecond)
	bytes := statusBytes("VmRSS") - before
	wake := timed(func() {
		close(gate)
		group.Wait()
	})
	return metrics{"bytes_per_fiber": float64(bytes) / float64(count),
		"create_ms": milliseconds(create), "wake_ms": milliseconds(wake)}, nil
}

func sleepers(count, naps int) (metrics, error) {
	var group sync.WaitGroup
	sleeper := func() {
		for range naps {
			time.Sleep(10 * time.Millisecond)
		}
		group.Done()
	}
	elapsed := timed(func() {
		group.Add(count)
		for range count {
			go sleeper()
		}
		group.Wait()
	})
	return metrics{"ms": milliseconds(elapsed)}, nil
}

// W10. The count that is scaled is the number of calls, which grows by the golden ratio per step.
func forkJoinFib(r request) (metrics, error) {
	n := 27
	for factor := r.scale; factor < 0.7 && n > 2; factor *= 1.618 {
		n--
	}
	var value int
	elapsed := timed(func() { value = fib(n) })
	a, b := 0, 1
	for range n {
		a, b = b, a+b
	}
	return metrics{"ms": milliseconds(elapsed)}, expect("fib", int64(value), int64(a))
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	first := make(chan int, 1)
	go func() { first <- fib(n - 1) }()
	second := fib(n - 2)
	return <-first + second
}

// expect guards against a workload that is fast because it does not do its work.
func expect(what string, got, wanted int64) error {
	if got != wanted {
		return fmt.Errorf("The %s is %d, but must be %d.", what, got, wanted)
	}
	return nil
}
