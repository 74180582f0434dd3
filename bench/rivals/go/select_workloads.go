package main

import (
	"sync"
	"time"
)

// W12_ready. Four channels with a value each; what a select has taken out is put back.
func selectReady(r request) (metrics, error) {
	var sum int
	count := r.count(2_000_000)
	perSelect := perUnit(count, func(count int) {
		sum = 0
		var channels [4]chan int
		for i := range channels {
			channels[i] = make(chan int, 1)
			channels[i] <- 1
		}
		a, b, c, d := channels[0], channels[1], channels[2], channels[3]
		for range count {
			select {
			case value := <-a:
				sum += value
				a <- 1
			case value := <-b:
				sum += value
				b <- 1
			case value := <-c:
				sum += value
				c <- 1
			case value := <-d:
				sum += value
				d <- 1
			}
		}
	})
	return metrics{"ns_per_select": perSelect}, expect("sum", int64(sum), int64(count))
}

// W12_becomes_ready. A select waits for four channels, to which another goroutine sends in turn.
func selectBecomesReady(r request) (metrics, error) {
	var sum int
	count := r.count(1_000_000)
	perSelect := perUnit(count, func(count int) {
		sum = 0
		a, b, c, d := make(chan int), make(chan int), make(chan int), make(chan int)
		go func() {
			channels := [4]chan int{a, b, c, d}
			for i := range count {
				channels[i%4] <- 1
			}
		}()
		for range count {
			select {
			case value := <-a:
				sum += value
			case value := <-b:
				sum += value
			case value := <-c:
				sum += value
			case value := <-d:
				sum += value
			}
		}
	})
	return metrics{"ns_per_select": perSelect}, expect("sum", int64(sum), int64(count))
}

// receiveFor is a receive with a deadline, as Go programs write it where it matters: the timer is
// the caller's, and used again.
func receiveFor(channel <-chan int, timer *time.Timer, patience time.Duration) (int, bool) {
	timer.Reset(patience)
	select {
	case value, ok := <-channel:
		timer.Stop()
		return value, ok
	case <-timer.C:
		return 0, false
	}
}

func stoppedTimer() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}

// W7b. Two goroutines hand a value to and fro, with deadlines that are set and cancelled, while
// others wait with deadlines, too.
func deadlinesMet(r request) (metrics, error) {
	const patience = 100 * time.Second
	pending := r.count(100_000)
	gate := make(chan int)
	var begun, waiting sync.WaitGroup
	begun.Add(pending)
	for i := range pending {
		waiting.Go(func() {
			begun.Done()
			receiveFor(gate, stoppedTimer(), time.Duration(1000+i%1000)*time.Second)
		})
	}
	begun.Wait()
	var sum, wanted int64
	perTrip := perUnit(r.count(1_000_000)/2, func(trips int) {
		ping, pong := make(chan int), make(chan int)
		sum, wanted = 0, int64(trips)
		go func() {
			timer := stoppedTimer()
			for {
				value, ok := receiveFor(ping, timer, patience)
				if !ok {
					return
				}
				pong <- value
			}
		}()
		timer := stoppedTimer()
		for range trips {
			ping <- 1
			value, _ := receiveFor(pong, timer, patience)
			sum += int64(value)
		}
		close(ping)
	})
	close(gate)
	waiting.Wait()
	return metrics{"ns_per_deadline": perTrip / 2}, expect("sum", sum, wanted)
}
