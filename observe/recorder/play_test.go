// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/observe"
)

var (
	database  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secret    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

var (
	root    = []string{"Database"}
	read    = []string{"Database", "ReadSecret"}
	child   = []string{"Database", "Children", "ConfigMap"}
	parent  = []string{"Database", "Children"}
	started = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// play passes the events of runs of a controller to a listener.
type play struct {
	to   observe.Listener
	run  *observe.Run
	runs int
	// refused are the refused writes of the run.
	refused []observe.Failure
	from    time.Time // before the first run, started by default
}

func (p *play) observe(e observe.Event) {
	p.to.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
}

func (p *play) start(name string, causes ...observe.Cause) {
	p.begin(name, causes...)
	p.enter(root)
}

// begin plays the start of a run that has not executed a step.
func (p *play) begin(name string, causes ...observe.Cause) {
	if len(causes) == 0 {
		causes = []observe.Cause{{Type: observe.CauseResync, Count: 1}}
	}
	p.runs++
	p.refused = nil
	p.run = &observe.Run{
		ID: fmt.Sprint(p.runs), Controller: "database", Kind: database, Causes: causes,
		Object:  types.NamespacedName{Namespace: "default", Name: name},
		Started: cmp.Or(p.from, started).Add(time.Duration(p.runs) * time.Second),
	}
	p.observe(&observe.ReconcileStarted{Run: p.run})
}

func (p *play) enter(path []string) { p.observe(&observe.StepStarted{Run: p.run, Path: path}) }

func (p *play) leave(path []string, err error) {
	e := &observe.StepFinished{Run: p.run, Path: path, Err: err, Outcome: observe.Succeeded, Duration: time.Millisecond}
	if err != nil {
		e.Outcome = observe.Failed
	}
	p.observe(e)
}

func (p *play) call(path []string, call observe.Call) {
	call.Run, call.Path, call.Duration = p.run, path, time.Millisecond
	p.observe(&call)
}

func (p *play) finish(result reconcile.Result, err error) {
	p.leave(root, err)
	p.observe(&observe.ReconcileFinished{
		Run: p.run, Result: result, Err: err, Refused: p.refused, Duration: 10 * time.Millisecond,
	})
}

// noOp plays a run with four steps and three reads from caches.
func (p *play) noOp(name string) {
	p.start(name)
	p.call(root, observe.Call{Verb: observe.VerbGet, Cached: true, Kind: database})
	p.enter(read)
	p.call(read, observe.Call{Verb: observe.VerbGet, Cached: true, Kind: secret})
	p.leave(read, nil)
	p.enter(parent)
	p.enter(child)
	p.call(child, observe.Call{Verb: observe.VerbList, Cached: true, Kind: configMap, Items: 1})
	p.leave(child, nil)
	p.leave(parent, nil)
	p.finish(reconcile.Result{}, nil)
}

// write plays a run that creates a ConfigMap.
func (p *play) write(name string) {
	p.start(name, observe.Cause{Type: observe.CauseObject, Verb: observe.Created, Kind: database, Count: 1})
	p.enter(parent)
	p.enter(child)
	p.call(child, observe.Call{
		Verb: observe.VerbCreate, Kind: configMap, Object: types.NamespacedName{Namespace: "default", Name: name}, After: "7",
	})
	p.leave(child, nil)
	p.leave(parent, nil)
	p.finish(reconcile.Result{RequeueAfter: time.Minute}, nil)
}

// wait plays a run that waits for the caches.
func (p *play) wait(name string) {
	p.start(name, observe.Cause{Type: observe.CauseOwned, Verb: observe.Generic, Kind: configMap, Count: 1})
	p.observe(&observe.StaleWait{Run: p.run, Wait: time.Second})
	p.observe(&observe.ReconcileFinished{Run: p.run, Result: reconcile.Result{RequeueAfter: time.Second}})
}

// fail plays a run that cannot create a ConfigMap.
func (p *play) fail(name string, err error) {
	p.start(name, observe.Cause{Type: observe.CauseRetry, Attempt: 1, Err: err, Count: 1})
	p.enter(parent)
	p.enter(child)
	p.call(child, observe.Call{
		Verb: observe.VerbCreate, Kind: configMap, Object: types.NamespacedName{Namespace: "default", Name: name}, Err: err,
	})
	p.leave(child, err)
	p.leave(parent, err)
	p.finish(reconcile.Result{}, err)
}
