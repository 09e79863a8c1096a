// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"
)

var scheduleNames = []string{"x", "y"}

// scheduleWorld is the complete state of a schedule.
type scheduleWorld struct {
	ctx     context.Context
	server  *scheduleServer
	process *scheduleProcess
	kind    scheduleKind
	policy  schedulePolicy
	resync  bool
	// failing is the probability, of 256, that a handler fails.
	failing int

	// choices are the remaining choices of the current step. Without choices, the behavior is normal.
	choices []byte
	// depth is the nesting depth of interruptions.
	depth int
	// quiet reports whether faults are disabled.
	quiet bool

	lives  map[lifeKey]*life
	serial int
	// pristine holds copies of objects that must not be changed.
	pristine []pristine
	counts   map[string]int
	trace    *[]string
}

type pristine struct{ held, copied subject }

func newScheduleWorld(ctx context.Context, head []byte, counts map[string]int, trace *[]string) *scheduleWorld {
	w := &scheduleWorld{ctx: ctx, counts: counts, trace: trace, lives: map[lifeKey]*life{}, choices: head}
	w.kind = scheduleKinds[w.pick(len(scheduleKinds))]
	w.policy = schedulePolicies[w.pick(len(schedulePolicies))]
	w.resync = w.chance(64)
	w.failing = []int{80, 30, 180}[w.pick(3)]
	w.server = &scheduleServer{world: w, proto: w.kind.proto, objects: map[string]subject{}}
	w.tracef("%s, retried by the %s, resync %t", w.kind.name, w.policy.name, w.resync)
	for range w.pick(3) {
		w.userAct(userCreates)
	}
	w.restart(len(w.server.history))
	return w
}

func (w *scheduleWorld) take() byte {
	if w.quiet || len(w.choices) == 0 {
		return 0
	}
	next := w.choices[0]
	w.choices = w.choices[1:]
	return next
}

// pick returns a number below n, 0 if no choice is left.
func (w *scheduleWorld) pick(n int) int { return int(w.take()) % n }

// chance returns true with a probability of of256 in 256, and false if no choice is left.
func (w *scheduleWorld) chance(of256 int) bool { return int(w.take()) >= 256-of256 }

func (w *scheduleWorld) count(what string) { w.counts[what]++ }

func (w *scheduleWorld) tracef(format string, args ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf(format, described(args)...))
	}
}

// mustStay registers an object of the cache, or one that was sent to it, for the check that it is not changed.
func (w *scheduleWorld) mustStay(obj subject) {
	w.pristine = append(w.pristine, pristine{obj, copyOf(obj)})
}

// A step of a schedule, or an interruption during one.
type scheduleAction struct {
	weight int
	do     func(w *scheduleWorld)
}

var (
	scheduleSteps = []scheduleAction{
		{70, (*scheduleWorld).workOne},
		{25, (*scheduleWorld).catchUp},
		{40, (*scheduleWorld).advance},
		{10, (*scheduleWorld).relist},
		{6, func(w *scheduleWorld) { w.process.resync(); w.process.deliver() }},
		{20, (*scheduleWorld).sleep},
		{8, func(w *scheduleWorld) { w.restartSomewhere() }},
		{77, func(w *scheduleWorld) { w.userAct(w.pick(userActions)) }},
	}
	scheduleInterruptions = []scheduleAction{
		{30, (*scheduleWorld).workOne},
		{60, (*scheduleWorld).advance},
		{20, (*scheduleWorld).relist},
		{10, func(w *scheduleWorld) { w.process.resync() }},
		{16, (*scheduleWorld).sleep},
		{20, func(w *scheduleWorld) { w.count("crashes"); w.tracef("  crash"); panic(crashed{}) }},
		{100, func(w *scheduleWorld) { w.userAct(w.pick(userActions)) }},
	}
)

func (w *scheduleWorld) act(actions []scheduleAction) {
	choice := int(w.take())
	for _, action := range actions {
		if choice -= action.weight; choice < 0 {
			action.do(w)
			return
		}
	}
}

// step runs one step of a schedule. After a crash, the next process starts.
func (w *scheduleWorld) step(choices []byte) {
	w.choices, w.depth = choices, 0
	defer func() {
		switch r := recover().(type) {
		case nil:
		case crashed:
			w.restartSomewhere()
		default:
			panic(r)
		}
	}()
	w.act(scheduleSteps)
}

// interrupt runs an action during a request.
func (w *scheduleWorld) interrupt(during string, what any) {
	if w.depth >= 2 || !w.chance(50) {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	w.tracef("  during %s %v:", during, what)
	w.act(scheduleInterruptions)
}

func (w *scheduleWorld) workOne() {
	if due := w.process.queue.due(); len(due) > 0 {
		w.process.work(due[w.pick(len(due))])
	}
}

// catchUp delivers all changes to the cache, and handles all requests that are due.
func (w *scheduleWorld) catchUp() {
	for w.process.advance() {
	}
	w.process.deliver()
	for _, name := range w.process.queue.due() {
		w.process.work(name)
	}
}

func (w *scheduleWorld) advance() {
	w.process.advance()
	if w.chance(64) {
		w.tracef("  the event is held up")
		return
	}
	w.process.deliver()
}

func (w *scheduleWorld) relist() {
	behind := len(w.server.history) - w.process.position
	w.process.relist(len(w.server.history) - w.pick(behind+1))
	w.process.deliver()
}

func (w *scheduleWorld) sleep() {
	d := []time.Duration{time.Second, 10 * time.Millisecond, 3 * time.Second, 11 * time.Second, time.Minute}[w.pick(5)]
	w.tracef("  %s pass", d)
	time.Sleep(d)
}

// restartSomewhere starts a process whose cache may begin with an old list.
func (w *scheduleWorld) restartSomewhere() {
	position := len(w.server.history)
	if w.chance(32) {
		position = w.pick(position + 1)
	}
	w.restart(position)
}
