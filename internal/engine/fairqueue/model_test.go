// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// model is a queue as simple as possible, with linear searches.
type model struct {
	// due are the requests that a worker can take. Requests of one priority and namespace are in order.
	due []waiting
	// turns are the namespaces of each priority in order.
	turns map[int][]string
	// again are the requests that were added while they are reconciled.
	again   map[reconcile.Request]int
	running map[reconcile.Request]bool
	delayed []waiting
	added   int
}

type waiting struct {
	reconcile.Request
	priority int
	until    time.Time
	added    int
}

func (m *model) add(req reconcile.Request, priority int, after time.Duration) {
	if i := slices.IndexFunc(m.due, func(w waiting) bool { return w.Request == req }); i >= 0 {
		if priority > m.due[i].priority {
			m.remove(i)
			m.insert(req, priority)
		}
		return
	}
	if before, ok := m.again[req]; ok {
		m.again[req] = max(before, priority)
		return
	}
	m.added++
	this := waiting{req, priority, time.Now().Add(after), m.added}
	if i := slices.IndexFunc(m.delayed, func(w waiting) bool { return w.Request == req }); i >= 0 {
		known := m.delayed[i]
		m.delayed = slices.Delete(m.delayed, i, i+1)
		if this.priority <= known.priority {
			this.priority, this.added = known.priority, known.added
		}
		if known.until.Before(this.until) {
			this.until = known.until
		}
	}
	if after > 0 {
		m.delayed = append(m.delayed, this)
		return
	}
	m.becomeDue(req, this.priority)
}

func (m *model) becomeDue(req reconcile.Request, priority int) {
	if m.running[req] {
		m.again[req] = priority
		return
	}
	m.insert(req, priority)
}

func (m *model) insert(req reconcile.Request, priority int) {
	m.due = append(m.due, waiting{Request: req, priority: priority})
	if !slices.Contains(m.turns[priority], req.Namespace) {
		m.turns[priority] = append(m.turns[priority], req.Namespace)
	}
}

func (m *model) remove(i int) {
	removed := m.due[i]
	m.due = slices.Delete(m.due, i, i+1)
	if !slices.ContainsFunc(m.due, func(w waiting) bool {
		return w.priority == removed.priority && w.Namespace == removed.Namespace
	}) {
		m.turns[removed.priority] = slices.DeleteFunc(m.turns[removed.priority], func(namespace string) bool {
			return namespace == removed.Namespace
		})
	}
}

func (m *model) get() (reconcile.Request, int) {
	highest := slices.MaxFunc(m.due, func(a, b waiting) int { return a.priority - b.priority }).priority
	turns := m.turns[highest]
	namespace := turns[0]
	m.turns[highest] = append(slices.Clone(turns[1:]), namespace)
	i := slices.IndexFunc(m.due, func(w waiting) bool { return w.priority == highest && w.Namespace == namespace })
	req := m.due[i].Request
	m.remove(i)
	m.running[req] = true
	return req, highest
}

func (m *model) done(req reconcile.Request) {
	delete(m.running, req)
	if priority, ok := m.again[req]; ok {
		delete(m.again, req)
		m.insert(req, priority)
	}
}

func (m *model) pass(d time.Duration) {
	now := time.Now().Add(d)
	slices.SortFunc(m.delayed, func(a, b waiting) int {
		if order := a.until.Compare(b.until); order != 0 {
			return order
		}
		return a.added - b.added
	})
	for len(m.delayed) > 0 && !m.delayed[0].until.After(now) {
		m.becomeDue(m.delayed[0].Request, m.delayed[0].priority)
		m.delayed = m.delayed[1:]
	}
}

// Does the queue do the same as the model, in random sequences of calls?
func TestQueueIsTheModel(t *testing.T) {
	sequences := 2000
	if testing.Short() {
		sequences = 200
	}
	for seed := range sequences {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			q := newQueue("")
			defer q.ShutDown()
			m := &model{turns: map[int][]string{}, again: map[reconcile.Request]int{}, running: map[reconcile.Request]bool{}}
			running, log := []reconcile.Request{}, []string{}
			for range 60 {
				req := request(fmt.Sprintf("%c/%d", 'a'+rune(random.IntN(3)), random.IntN(4)))
				priority, after := random.IntN(3)-1, time.Duration(random.IntN(4))*time.Second
				switch choice := random.IntN(10); {
				case choice < 3:
					log = append(log, fmt.Sprintf("add %v at %d", req, priority))
					q.AddWithOpts(withPriority(priority), req)
					m.add(req, priority, 0)
				case choice < 5:
					log = append(log, fmt.Sprintf("add %v at %d after %s", req, priority, after))
					q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, req)
					m.add(req, priority, after)
				case choice < 6:
					log = append(log, fmt.Sprintf("%s pass", after))
					m.pass(after)
					time.Sleep(after)
				case choice < 8 && len(running) > 0:
					i := random.IntN(len(running))
					log = append(log, fmt.Sprintf("done %v", running[i]))
					q.Done(running[i])
					m.done(running[i])
					running = slices.Delete(running, i, i+1)
				case len(m.due) > 0:
					want, wantPriority := m.get()
					got, gotPriority, _ := q.GetWithPriority()
					log = append(log, fmt.Sprintf("get %v at %d", got, gotPriority))
					if got != want || gotPriority != wantPriority {
						t.Fatalf("seed %d: want %v at %d:\n%s", seed, want, wantPriority, strings.Join(log, "\n"))
					}
					running = append(running, got)
				}
				synctest.Wait()
				if q.Len() != len(m.due) {
					t.Fatalf("seed %d: %d requests, want %d:\n%s", seed, q.Len(), len(m.due), strings.Join(log, "\n"))
				}
			}
		})
	}
}

// Does the queue do the same as controller-runtime's if there is only one namespace? They differ in the place of a
// request that is added while it is reconciled, or due before its delay ends: there it is the last one of its priority.
// The sequences do neither.
func TestOneNamespaceIsControllerRuntimes(t *testing.T) {
	sequences := 500
	if testing.Short() {
		sequences = 50
	}
	for seed := range sequences {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			theirs := priorityqueue.New("", func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = newLimiter() })
			ours := newQueue("")
			defer theirs.ShutDown()
			defer ours.ShutDown()
			running, log := []reconcile.Request{}, []string{}
			for range 60 {
				options := withPriority(random.IntN(3) - 1)
				name := "a/now"
				if random.IntN(2) == 0 {
					name = "a/later"
					options.RateLimited = random.IntN(2) == 0
					if options.After = time.Duration(random.IntN(4)) * time.Second; !options.RateLimited {
						options.After += time.Second
					}
				}
				req := request(fmt.Sprint(name, random.IntN(4)))
				switch choice := random.IntN(10); {
				case choice < 5 && !slices.Contains(running, req):
					log = append(log, fmt.Sprintf("add %v: %+v", req, options))
					theirs.AddWithOpts(options, req)
					ours.AddWithOpts(options, req)
				case choice < 6:
					log = append(log, "a second passes")
					time.Sleep(time.Second)
				case choice < 8 && len(running) > 0:
					req := running[0]
					running = running[1:]
					log = append(log, fmt.Sprintf("done %v", req))
					theirs.Done(req)
					ours.Done(req)
					if random.IntN(2) == 0 {
						theirs.Forget(req)
						ours.Forget(req)
					}
				case theirs.Len() > 0:
					want, wantPriority, _ := theirs.GetWithPriority()
					got, gotPriority, _ := ours.GetWithPriority()
					log = append(log, fmt.Sprintf("get %v at %d", got, gotPriority))
					if got != want || gotPriority != wantPriority {
						t.Fatalf("seed %d: want %v at %d:\n%s", seed, want, wantPriority, strings.Join(log, "\n"))
					}
					running = append(running, got)
				}
				synctest.Wait()
				if ours.Len() != theirs.Len() {
					t.Fatalf("seed %d: %d requests, want %d:\n%s", seed, ours.Len(), theirs.Len(), strings.Join(log, "\n"))
				}
			}
		})
	}
}
