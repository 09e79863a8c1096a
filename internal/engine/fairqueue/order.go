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

// TurnOf returns whose turn a request is in, for example its namespace. The requests of one turn take turns by what
// they are within: it may be the same for all.
type TurnOf[R comparable] func(req R) (turn, within string)

// order is the order of the requests that are due. The workqueue calls its methods Push, Pop, Touch and Len while the
// workqueue is locked.
type order[R comparable] struct {
	turnOf TurnOf[R]

	mu sync.Mutex
	// known are the requests that were added and not taken since. A request that is being reconciled is not in a turn
	// until that has ended.
	known map[R]*entry[R]
	// taken has the priority of a request between Pop and priorityOf.
	taken map[R]int
	// levels are sorted, the highest priority first. There are as many as priorities are in use, usually two.
	levels  []*level
	turns   map[turnKey]*turn[R]
	parts   map[partKey]*part[R]
	waiting int
}

func newOrder[R comparable](turnOf TurnOf[R]) *order[R] {
	return &order[R]{
		turnOf: turnOf, known: map[R]*entry[R]{}, taken: map[R]int{},
		turns: map[turnKey]*turn[R]{}, parts: map[partKey]*part[R]{},
	}
}

var _ workqueue.Queue[reconcile.Request] = (*order[reconcile.Request])(nil)

// entry is a request that is due.
type entry[R comparable] struct {
	request  R
	priority int
	// of has the entry, as element at. It is nil while the request is being reconciled.
	of *part[R]
	at *list.Element
}

// level has the turns of one priority, at least one. The first is next.
type level struct {
	priority int
	turns    list.List // of *turn
}

// turn has the requests of one namespace, or cluster, at one level, at least one. Its first part is next.
type turn[R comparable] struct {
	level *level
	at    *list.Element
	parts list.List // of *part
}

// part has the requests of a turn that are within one thing, for example a namespace of a cluster, at least one.
type part[R comparable] struct {
	key     partKey
	turn    *turn[R]
	at      *list.Element
	entries list.List // of *entry
}

type turnKey struct {
	priority int
	of       string
}

type partKey struct {
	turnKey
	within string
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
		waits := e.of != nil
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
	within := next.parts.Front().Value.(*part[R])
	next.parts.MoveToBack(within.at)
	e := within.entries.Front().Value.(*entry[R])
	o.remove(e)
	delete(o.known, e.request)
	o.taken[e.request] = e.priority
	return e.request
}

func (o *order[R]) insert(e *entry[R]) {
	of, within := o.turnOf(e.request)
	key := partKey{turnKey{e.priority, of}, within}
	e.of = o.parts[key]
	if e.of == nil {
		t := o.turn(key.turnKey)
		e.of = &part[R]{key: key, turn: t}
		e.of.at = t.parts.PushBack(e.of)
		o.parts[key] = e.of
	}
	e.at = e.of.entries.PushBack(e)
	o.waiting++
}

// turn returns a turn, which is the last one of its level if it is new.
func (o *order[R]) turn(key turnKey) *turn[R] {
	t := o.turns[key]
	if t == nil {
		i, exists := o.level(key.priority)
		if !exists {
			o.levels = slices.Insert(o.levels, i, &level{priority: key.priority})
		}
		t = &turn[R]{level: o.levels[i]}
		t.at = t.level.turns.PushBack(t)
		o.turns[key] = t
	}
	return t
}

func (o *order[R]) remove(e *entry[R]) {
	from := e.of
	from.entries.Remove(e.at)
	e.of, e.at = nil, nil
	o.waiting--
	if from.entries.Len() > 0 {
		return
	}
	t := from.turn
	t.parts.Remove(from.at)
	delete(o.parts, from.key)
	if t.parts.Len() > 0 {
		return
	}
	t.level.turns.Remove(t.at)
	delete(o.turns, from.key.turnKey)
	if t.level.turns.Len() == 0 {
		i, _ := o.level(t.level.priority)
		o.levels = slices.Delete(o.levels, i, i+1)
	}
}

// level returns the index of the level of a priority, or where to insert it.
func (o *order[R]) level(priority int) (index int, exists bool) {
	return slices.BinarySearchFunc(o.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
}

// Line has requests in the order of a queue, without workers. It must not be used by several goroutines at a time.
type Line[R comparable] struct{ order *order[R] }

// NewLine returns an empty line.
func NewLine[R comparable](turnOf TurnOf[R]) *Line[R] { return &Line[R]{newOrder(turnOf)} }

// Add adds a request. A request that was added before, and not taken since, gets the higher priority.
func (l *Line[R]) Add(req R, priority int) {
	if !l.order.raise(req, priority) {
		l.order.expect(req, priority)
		l.order.Push(req)
	}
}

// Len returns the number of requests.
func (l *Line[R]) Len() int { return l.order.Len() }

// Take removes the next request of a line that is not empty.
func (l *Line[R]) Take() (req R, priority int) {
	req = l.order.Pop()
	return req, l.order.priorityOf(req)
}
