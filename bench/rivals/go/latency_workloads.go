package main

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	wakePause     = 500 * time.Microsecond
	shortWork     = 5 * time.Microsecond
	longWork      = time.Millisecond
	burstPause    = 20 * time.Microsecond
	wakerComputes = 200 * time.Microsecond
	mixedLoadPart = 0.5
)

// compute keeps a processor busy, by the clock.
func compute(work time.Duration) {
	for start := time.Now(); time.Since(start) < work; {
	}
}

func quantile(sorted []time.Duration, part float64) float64 {
	rank := max(1, int(math.Ceil(part*float64(len(sorted)))))
	return float64(sorted[rank-1].Nanoseconds()) / 1e3
}

func (m metrics) addQuantiles(prefix string, latencies []time.Duration) {
	slices.Sort(latencies)
	m[prefix+"p50_us"] = quantile(latencies, 0.5)
	m[prefix+"p99_us"] = quantile(latencies, 0.99)
	m[prefix+"p999_us"] = quantile(latencies, 0.999)
}

func quantiles(latencies []time.Duration) metrics {
	measured := metrics{}
	measured.addQuantiles("", latencies)
	return measured
}

// isLong is true for one of ten, the same ones as in the other programs (splitmix64).
func isLong(number int) bool {
	mixed := uint64(number+1) * 0x9E3779B97F4A7C15
	mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9
	mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB
	return (mixed^(mixed>>31))%10 == 0
}

// W11_idle. Go has no plain threads; a goroutine that is locked to a thread, and sleeps in a system
// call of that thread, stands nearest. It has a processor of its own, beside the workers: without
// one it would hold on to a worker's in its sleep, and what it woke would wait for sysmon.
func wakeIdle(r request) (metrics, error) {
	count := r.count(5_000)
	runtime.GOMAXPROCS(r.workers + 1)
	wakes := make(chan time.Time, 1)
	go func() {
		runtime.LockOSThread()
		for range count {
			pause := syscall.NsecToTimespec(wakePause.Nanoseconds())
			syscall.Nanosleep(&pause, nil)
			wakes <- time.Now()
		}
		close(wakes)
	}()
	latencies := make([]time.Duration, 0, count)
	for woken := range wakes {
		latencies = append(latencies, time.Since(woken))
	}
	return quantiles(latencies), expect("number of wakes", int64(len(latencies)), int64(count))
}

// W11_busy. The goroutine that wakes computes on: only the other processor can run what it has
// woken.
func wakeBusy(r request) (metrics, error) {
	if r.workers != 2 {
		return nil, refusal{"W11_busy is about one worker and one other."}
	}
	count := r.count(10_000)
	wakes, latencies := make(chan time.Time, 1), make(chan time.Duration, 1)
	var stopped atomic.Bool
	var bursts sync.WaitGroup
	bursts.Go(func() {
		for !stopped.Load() {
			var burst sync.WaitGroup
			for range 10 {
				burst.Go(func() { compute(shortWork) })
			}
			burst.Wait()
			time.Sleep(burstPause)
		}
	})
	go func() {
		for woken := range wakes {
			latencies <- time.Since(woken)
		}
	}()
	found := make([]time.Duration, 0, count)
	for range count {
		now := time.Now()
		wakes <- now
		for time.Since(now) < wakerComputes {
		}
		found = append(found, <-latencies)
	}
	stopped.Store(true)
	close(wakes)
	bursts.Wait()
	return quantiles(found), nil
}

// W11_mixed. Goroutines arrive by the clock, and their latency counts from the moment at which they
// should have arrived.
func mixedLoad(r request) (metrics, error) {
	meanWork := (9*shortWork + longWork) / 10
	interval := time.Duration(float64(meanWork) / (mixedLoadPart * float64(r.workers)))
	count := r.count(20_000 * r.workers)
	sinceArrival, sinceSpawn := make([]time.Duration, count), make([]time.Duration, count)
	var group sync.WaitGroup
	start := time.Now()
	for i := range count {
		arrival := start.Add(time.Duration(i+1) * interval)
		time.Sleep(time.Until(arrival))
		spawned := time.Now()
		group.Go(func() {
			now := time.Now()
			sinceArrival[i], sinceSpawn[i] = now.Sub(arrival), now.Sub(spawned)
			if isLong(i) {
				compute(longWork)
			} else {
				compute(shortWork)
			}
		})
	}
	group.Wait()
	measured := quantiles(sinceArrival)
	measured.addQuantiles("spawned_", sinceSpawn)
	return measured, nil
}
