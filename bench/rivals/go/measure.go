package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The ns-metrics are preceded by this part of the work, which warms caches and free lists.
const warmUpPart = 20

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// timed runs the work once and returns how long it took.
func timed(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

// perUnit warms up, then times `units` units of work and returns the nanoseconds of one.
func perUnit(units int, work func(units int)) float64 {
	work(max(1, units/warmUpPart))
	elapsed := timed(func() { work(units) })
	return float64(elapsed.Nanoseconds()) / float64(units)
}

// statusBytes reads a size such as VmRSS or VmHWM, which the kernel states in KiB; 0 if absent.
func statusBytes(field string) int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) >= 2 && words[0] == field+":" {
			kib, _ := strconv.ParseInt(words[1], 10, 64)
			return kib * 1024
		}
	}
	return 0
}

// cpuMilliseconds is the user and system time of the whole process until now.
func cpuMilliseconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}
