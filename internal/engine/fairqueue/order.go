// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"cmp"
	"container/list"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// order is the order of the requests that are due. The workqueue calls its methods Push, Pop, Touch and Len while the
// workqueue is locked.
type order[R comparable] struct {
	// turnOf returns whose turn a request is in, for example its namespace.
	turnOf func(req R) string

	mu sync.Mutex
	// known are the requests that were added and not taken since. A request that is being reconciled is not in a turn
	// until that has ended.
	known map[R]*entry[R]
	// taken has the priority of a request between Pop and priorityOf.
	taken map[R]int
	// levels are sorted, the highest priority first. There are as many as priorities are in use, usually two.
	levels  []*level
	turns   map[turnKey]*turn[R]
	waiting int
}

var _ workqueue.Queue[reconcile.Request] = (*order[reconcile.Request])(nil)

// entry is a request that is due.
type entry[R comparable] struct {
	request  R
	priority int
	// turn has the entry, as element at. It is nil while the request is being reconciled.
	turn *turn[R]
	at   *list.Element
}

// level has the turns of one priority, at least one. The first is next.
type level struct {
	priority int
	turns    list.List // of *turn
}

// turn has the requests of one namespace, or cluster, at one level, at least one.
type turn[R comparable] struct {
	key     turnKey
	level   *level
	at      *list.Element
	entries list.List // of *entry
}

type turnKey struct {
	priority int
	of       string
}

// raise gives a request the higher priority. It returns false if the request was not added, or was taken since.
func (o *order[R]) raise(req R, priority int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.known[req]
	if e == nil {
		return false
	}
	if priority > e.priority {
		waits := e.turn != nil
		if waits {
			o.remove(e)
		}
		if e.priority = priority; waits {
			o.insert(e)
		}
	}
	return true
}

// expect records the priority of a request that is going to be added to the workqueue.
func (o *order[R]) expect(req R, priority int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[req] = &entry[R]{request: req, priority: priority}
}

// priorityOf returns the priority of a request that Pop has returned.
func (o *order[R]) priorityOf(req R) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	priority := o.taken[req]
	delete(o.taken, req)
	return priority
}

// Touch does nothing: raise is called before.
func (o *order[R]) Touch(R) {}

// Push adds a request that no worker reconciles.
func (o *order[R]) Push(req R) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.insert(o.known[req])
}

// Len returns the number of requests that a worker can take.
func (o *order[R]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting
}

// Pop returns the next request: of the highest priority, and of the namespace or cluster whose turn it is.
func (o *order[R]) Pop() R {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.levels[0].turns.Front().Value.(*turn[R])
	next.level.turns.MoveToBack(next.at)
	e := next.entries.Front().Value.(*entry[R])
	o.remove(e)
	delete(o.known, e.request)
	o.taken[e.request] = e.priority
	return e.request
}

func (o *order[R]) insert(e *entry[R]) {
	key := turnKey{e.priority, o.turnOf(e.request)}
	e.turn = o.turns[key]
	if e.turn == nil {
		i, exists := o.level(e.priority)
		if !exists {
			o.levels = slices.Insert(o.levels, i, &level{priority: e.priority})
		}
		at := o.levels[i]
		e.turn = &turn[R]{key: key, level: at}
		e.turn.at = at.turns.PushBack(e.turn)
		o.turns[key] = e.turn
	}
	e.at = e.turn.entries.PushBack(e)
	o.waiting++
}

func (o *order[R]) remove(e *entry[R]) {
	from := e.turn
	from.entries.Remove(e.at)
	e.turn, e.at = nil, nil
	o.waiting--
	if from.entries.Len() > 0 {
		return
	}
	from.level.turns.Remove(from.at)
	delete(o.turns, from.key)
	if from.level.turns.Len() == 0 {
		i, _ := o.level(from.level.priority)
		o.levels = slices.Delete(o.levels, i, i+1)
	}
}

// level returns the index of the level of a priority, or where to insert it.
func (o *order[R]) level(priority int) (index int, exists bool) {
	return slices.BinarySearchFunc(o.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
}
