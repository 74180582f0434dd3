package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	fairWork   = 20 * time.Microsecond
	fairSleep  = time.Millisecond
	fairTokens = 64
)

type waiting int

const (
	byYield waiting = iota
	byTimer
	byChannel
	byThread
)

// turns is what a goroutine has had; each on a line of its own.
type turns struct {
	count      uint64
	last       time.Time
	longestGap time.Duration
	_          [24]byte
}

func (t *turns) note() {
	now := time.Now()
	t.longestGap = max(t.longestGap, now.Sub(t.last))
	t.last = now
	t.count++
}

func metricsOf(all []turns) metrics {
	var counts []uint64
	var gaps []time.Duration
	for i := range all {
		counts = append(counts, all[i].count)
		gaps = append(gaps, all[i].longestGap)
	}
	slices.Sort(counts)
	median := float64(counts[len(counts)/2])
	measured := metrics{"median_turns": median}
	measured.addQuantiles("gap_", gaps)
	measured["median_by_slowest"] = median / max(float64(counts[0]), 0.5)
	measured["fastest_by_median"] = float64(counts[len(counts)-1]) / max(median, 0.5)
	return measured
}

// W13. The same as in weft's program; byThread is a goroutine that is locked to a thread of its own,
// with a processor beside the workers'.
func fairTurns(goroutines int, how waiting) func(request) (metrics, error) {
	return func(r request) (metrics, error) {
		duration := time.Duration(r.scale * max(1, float64(goroutines)/2_000) * float64(time.Second))
		var begun atomic.Int64
		var started, stopped atomic.Bool
		tokens := make(chan int, fairTokens)
		if how == byThread {
			tokens = make(chan int)
		}
		ended := make(chan struct{})
		waitForTurn := func() bool {
			switch how {
			case byYield:
				runtime.Gosched()
			case byTimer:
				time.Sleep(fairSleep)
			default:
				select {
				case <-tokens:
				case <-ended:
					return false
				}
			}
			return !stopped.Load()
		}
		all := make([]turns, goroutines)
		var group sync.WaitGroup
		for i := range all {
			group.Go(func() {
				begun.Add(1)
				for (how == byYield || how == byTimer) && !started.Load() {
					runtime.Gosched()
				}
				all[i].last = time.Now()
				for waitForTurn() {
					all[i].note()
					compute(fairWork)
					if how == byChannel {
						tokens <- 0
					}
				}
				all[i].note()
				all[i].count--
			})
		}
		for begun.Load() < int64(goroutines) {
			runtime.Gosched()
		}
		started.Store(true)
		// Those that wait for a channel are parked there before the first value is sent.
		if how == byChannel || how == byThread {
			time.Sleep(10 * fairSleep)
		}
		switch how {
		case byChannel:
			for range fairTokens {
				tokens <- 0
			}
		case byThread:
			runtime.GOMAXPROCS(r.workers + 1)
			go func() {
				runtime.LockOSThread()
				for {
					select {
					case tokens <- 0:
					case <-ended:
						return
					}
				}
			}()
		}
		time.Sleep(duration)
		stopped.Store(true)
		close(ended)
		group.Wait()
		return metricsOf(all), nil
	}
}
