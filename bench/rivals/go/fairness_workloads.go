package main

import (
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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
	bySocket
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

// askers are the goroutines that are about to wait.
type askers []atomic.Bool

// wakeThem wakes them until it is told to end.
func (a askers) wakeThem(stopped *atomic.Bool, wake func(int)) {
	for !stopped.Load() {
		for i := range a {
			if a[i].Swap(false) {
				wake(i)
			}
		}
	}
}

// sockets are one for each goroutine, and the descriptors of their other ends.
type sockets struct {
	conns []net.Conn
	ends  []int
}

func openSockets(count int) (*sockets, error) {
	all := &sockets{}
	for range count {
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return nil, err
		}
		file := os.NewFile(uintptr(pair[0]), "socket")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			return nil, err
		}
		all.conns = append(all.conns, conn)
		all.ends = append(all.ends, pair[1])
	}
	return all, nil
}

func (s *sockets) receive(i int) bool {
	var buffer [1]byte
	count, _ := s.conns[i].Read(buffer[:])
	return count != 0
}

func (s *sockets) sendTo(i int) {
	_, _ = syscall.Write(s.ends[i], []byte{0})
}

func (s *sockets) closeEnds() {
	for i := range s.ends {
		syscall.Close(s.ends[i])
	}
}

func (s *sockets) close() {
	for _, conn := range s.conns {
		conn.Close()
	}
}

// W13. The same as in weft's program; by a thread or a socket, a goroutine that is locked to a thread
// of its own wakes the others, with a processor beside the workers'.
func fairTurns(goroutines int, how waiting) func(request) (metrics, error) {
	return func(r request) (metrics, error) {
		duration := time.Duration(r.scale * max(1, float64(goroutines)/2_000) * float64(time.Second))
		var begun atomic.Int64
		var started, stopped atomic.Bool
		tokens := make(chan int, fairTokens)
		asked := make(askers, goroutines)
		permits := make([]chan struct{}, goroutines)
		for i := range permits {
			permits[i] = make(chan struct{}, 1)
		}
		var own *sockets
		if how == bySocket {
			var err error
			if own, err = openSockets(goroutines); err != nil {
				return nil, err
			}
			defer own.close()
		}
		ended := make(chan struct{})
		waitForTurn := func(i int) bool {
			switch how {
			case byYield:
				runtime.Gosched()
			case byTimer:
				time.Sleep(fairSleep)
			case bySocket:
				asked[i].Store(true)
				if !own.receive(i) {
					return false
				}
			case byThread:
				asked[i].Store(true)
				select {
				case <-permits[i]:
				case <-ended:
					return false
				}
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
				for waitForTurn(i) {
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
		// Goroutines that wait for a channel are parked there before the first value is sent.
		if how != byYield && how != byTimer {
			time.Sleep(10 * fairSleep)
		}
		wakeThem := func(wake func(int)) {
			runtime.GOMAXPROCS(r.workers + 1)
			go func() {
				runtime.LockOSThread()
				asked.wakeThem(&stopped, wake)
				if how == bySocket {
					own.closeEnds()
				}
			}()
		}
		switch how {
		case byChannel:
			for range fairTokens {
				tokens <- 0
			}
		case byThread:
			wakeThem(func(i int) { permits[i] <- struct{}{} })
		case bySocket:
			wakeThem(own.sendTo)
		}
		time.Sleep(duration)
		stopped.Store(true)
		close(ended)
		group.Wait()
		return metricsOf(all), nil
	}
}
