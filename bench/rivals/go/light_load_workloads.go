package main

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

const lightSeconds = 2.0

// sleepByAGrid sleeps until each moment of a grid, and returns by how much each sleep ended late.
func sleepByAGrid(pause time.Duration, count int) []time.Duration {
	late := make([]time.Duration, 0, count)
	due := time.Now()
	for range count {
		due = due.Add(pause)
		if now := time.Now(); now.After(due) {
			due = now
		}
		time.Sleep(time.Until(due))
		late = append(late, time.Since(due))
	}
	return late
}

// kernelSwitches is how often a thread of the process has waited in the kernel until now.
func kernelSwitches() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Nvcsw)
}

// W14: goroutines that do nothing but sleep.
func lightSleeps(goroutines int, pause time.Duration) func(request) (metrics, error) {
	return func(r request) (metrics, error) {
		seconds := max(0.1, lightSeconds*r.scale)
		count := int(seconds * 1e9 / float64(pause.Nanoseconds()))
		late := make([][]time.Duration, goroutines)
		processor, switches := cpuMilliseconds(), kernelSwitches()
		start := time.Now()
		var all sync.WaitGroup
		for i := range late {
			all.Go(func() { late[i] = sleepByAGrid(pause, count) })
		}
		all.Wait()
		milliseconds := float64(time.Since(start).Nanoseconds()) / 1e6
		measured := metrics{
			"cpu_percent":         100 * (cpuMilliseconds() - processor) / milliseconds,
			"switches_per_second": 1e3 * (kernelSwitches() - switches) / milliseconds,
		}
		measured.addQuantiles("late_", slices.Concat(late...))
		return measured, nil
	}
}
