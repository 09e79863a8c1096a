// SPDX-License-Identifier: Apache-2.0

// Package sim executes a scenario once, with a schedule of faults: [Run] takes a [Machine], which is the scenario in a
// form that does not depend on what users write, and returns what has happened, as the oracles judge it.
//
//   - run.go has the parts of a run, and loop.go decides what happens next
//   - scheduler.go knows what is due, and whether the controller is idle; injector.go decides where which fault occurs
//   - users.go and settle.go perform the steps; actors.go is other controllers, and others.go the client that
//     interferes
//   - start.go and manager.go start a process of a program; configure.go applies options of the manager, election.go is
//     its leader election; process.go has its calls and reconciles, processes.go the processes of all programs, and
//     queue.go their requests
//   - client.go makes calls, which gateway.go answers, with faults; authorization.go and refused_requests.go refuse
//     some, and removed_kinds.go those about kinds that are not served
//   - informer.go, cache.go and read.go are the caches, which process_informer.go shows as client-go does, and
//     watches.go forwards events to them
//   - webhook.go and webhooks.go call webhooks for all writes
//
// All of it belongs to the goroutine of the run, in one bubble of testing/synctest. Goroutines of a process wait with
// their calls until the loop serves them, one at a time, so that equal schedules lead to equal runs.
package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// run executes one schedule of a scenario. It connects the parts that do: users perform steps, the loop decides what
// happens next, the gateway answers calls of the process, watches forward events, the injector injects faults, and
// oracles check the trace and the world. Each part has the scene, and the parts that it commands. None has the run.
//
// A run belongs to the goroutine that has created it, in one bubble of testing/synctest.
type run struct {
	*scene

	versions    versions
	permissions permissions
	conversions conversions
	webhooks    webhooks
	watches     watches
	gateway     gateway
	users       users
	others      otherClient
	actors      actors
	removed     removedKinds

	// processes has the present process of each program, in the order of the programs.
	processes processes
	// listOrder is the order of lists from caches, or 0 if they are sorted.
	listOrder int
}

// scene is what all parts of a run share: what is executed, what exists, what has happened, where faults are injected,
// what is due, and what is wrong. Nothing of it knows the parts.
type scene struct {
	machine   *Machine
	world     world.World
	trace     trace
	faults    injector
	scheduler scheduler
	oracles   judge.Oracles
	verdict   judge.Verdict
	// lessons are what the run teaches.
	lessons Lessons
}

// trace is what has happened in a run and, if it is to be shown, a timeline, which is nil for most runs.
type trace struct {
	world.Trace
	*explain.Timeline
}

// Variation distinguishes runs without faults, to find out what depends on time, versions, UIDs or chance.
type Variation struct {
	Seed  uint64
	Delay time.Duration
	// Versions is the number of resource versions that were used before.
	Versions int
	// Skip are the indexes of the Settles that users do not wait for. Hurry are those that they do not wait for once
	// another client has deleted an object.
	Skip, Hurry []int
	// Twice reconciles all objects again twice at each Settle, instead of once.
	Twice bool
	// Slow delays actors until everything else is idle, and reverse lets them act in the opposite order.
	Slow, Reverse bool
	// LateGarbage delays the garbage collector until everything else is idle.
	LateGarbage bool
	// ProbesRoles allows what the roles do not, and reports all missing rules in the end.
	ProbesRoles bool
	// Unmarked removes the annotation of the other client at once, so that a conflict leaves nothing but another version.
	Unmarked bool
}

// newRun starts a run: the API server has the given objects, and the process has started.
func newRun(m *Machine, s inject.Schedule, v Variation, log *explain.Timeline) *run {
	time.Sleep(v.Delay)
	if m.Reset != nil {
		m.Reset()
	}
	r := &run{scene: &scene{machine: m}}
	r.world = r.newWorld(v.Seed)
	r.trace = trace{Timeline: log}
	log.Observe(&r.world)
	r.verdict = judge.Verdict{Scenario: m.Judged, Trace: &r.trace.Trace, Tell: log.Violation}
	r.scheduler = newScheduler(m.Patience, &r.trace.Trace)
	r.faults = newInjector(m, s, &r.world, &r.trace)
	r.oracles = judge.NewOracles(
		judge.Evidence{Verdict: &r.verdict, Scenario: m.Judged, World: &r.world, Trace: &r.trace.Trace, Queues: &r.processes},
		&r.scheduler.Pace, len(s), v.Twice,
	)
	r.connect(v)
	r.age(v.Versions)
	r.give()
	var err error
	if r.world.Given, err = m.outside(); err != nil {
		r.verdict.Violate(finding.ScenarioFailure("Outside: " + err.Error()))
	}
	for order := 1; order <= 3; order++ {
		at := inject.Site{Act: "lists", Key: types.NamespacedName{Name: fmt.Sprint("order ", order)}}
		if r.faults.at(at, inject.SetOf(inject.ListOrder)) == inject.ListOrder {
			r.listOrder = order
		}
	}
	r.removed.atStart()
	first := m.of(1)
	for _, program := range first.Programs {
		if m.upgrades() {
			r.trace.Start(program.who(), 1, first.Name)
		}
		if !r.verdict.Failed() {
			r.start(program, 1)
		}
	}
	return r
}

// connect creates the parts.
func (r *run) connect(v Variation) {
	r.versions = versions{scene: r.scene}
	r.versions.run(1)
	r.permissions = permissions{scene: r.scene, probes: v.ProbesRoles}
	r.conversions = conversions{scene: r.scene, versions: &r.versions}
	r.webhooks = webhooks{scene: r.scene, processes: &r.processes, gateway: &r.gateway}
	r.watches = watches{
		scene: r.scene, processes: &r.processes, conversions: &r.conversions, users: &r.users, actors: &r.actors,
	}
	r.gateway = gateway{
		scene: r.scene, watches: &r.watches, processes: &r.processes, users: &r.users, others: &r.others,
		permissions: &r.permissions, versions: &r.versions, removed: &r.removed,
	}
	r.users = users{
		scene: r.scene, watches: &r.watches, skip: v.Skip, hurry: v.Hurry, unsettled: map[types.NamespacedName]int{},
	}
	r.others = otherClient{
		scene: r.scene, watches: &r.watches, actors: &r.actors, processes: &r.processes, users: &r.users,
		unmarked: v.Unmarked,
	}
	r.removed = removedKinds{
		scene: r.scene, watches: &r.watches, processes: &r.processes, versions: &r.versions, permissions: &r.permissions,
	}
	r.actors = actors{
		scene: r.scene, watches: &r.watches, slow: v.Slow, reverse: v.Reverse, lateGarbage: v.LateGarbage,
	}
	for _, actor := range r.machine.Actors {
		r.actors.list = append(r.actors.list, &actorState{Actor: actor, client: r.world.Server.Client(actor.Name)})
	}
}

func (r *run) newWorld(seed uint64) world.World {
	m, first := r.machine, r.machine.of(1)
	w := world.NewWorld(memapi.Options{
		Registry: first.Registry, Applier: first.Applier, Admission: &r.webhooks, Seed: seed,
		Conversion: r.conversions.convert, Versions: m.Shown, TrackFields: m.ManagedFields,
	})
	w.Primary, w.IsProgram, w.Random, w.ReadOutside = first.Primary, m.Judged.IsProgram, m.Random, m.outside
	return w
}

// age uses some resource versions.
func (r *run) age(versions int) {
	ctx := context.Background()
	for n := range versions {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		obj.SetNamespace(metav1.NamespaceDefault)
		obj.SetName("converge-" + strconv.Itoa(n))
		if err := errors.Join(r.world.User.Create(ctx, obj), r.world.User.Delete(ctx, obj)); err != nil {
			r.verdict.Violate(finding.ScenarioFailure(err.Error()))
			return
		}
	}
	r.world.Forwarded = r.world.Server.Version()
}

// give creates the objects that exist before the controller starts.
func (r *run) give() {
	for i, given := range r.machine.Given {
		obj := given.DeepCopyObject().(client.Object)
		obj.SetResourceVersion("")
		if err := r.world.User.Create(context.Background(), obj); err != nil {
			r.verdict.Violate(finding.ScenarioFailure(fmt.Sprintf("Given[%d]: %v", i, err)))
			return
		}
		gvk, err := apiutil.GVKForObject(given, r.machine.Scheme)
		if kind, ok := r.machine.of(1).Registry.For(gvk); err != nil || !ok || !kind.Status || !hasStatus(given) {
			continue
		}
		withStatus := given.DeepCopyObject().(client.Object)
		withStatus.SetResourceVersion(obj.GetResourceVersion())
		if err := r.world.User.Status().Update(context.Background(), withStatus); err != nil {
			r.verdict.Violate(finding.ScenarioFailure(fmt.Sprintf("Given[%d]: status: %v", i, err)))
			return
		}
	}
	r.watches.forward()
}

// execute performs the steps, and checks the whole run.
func (r *run) execute() {
	if r.verdict.Failed() {
		return
	}
	r.perform()
	r.permissions.reportMissing(r.versions.running.Programs)
	r.conversions.report()
	if !r.verdict.Failed() {
		r.oracles.Ended(
			r.users.skipped, r.users.merged, r.faults.none() && r.machine.Judged.Records && len(r.users.skip) == 0,
		)
	}
}

// hasStatus reports whether an object has a status that is not empty.
func hasStatus(obj client.Object) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false
	}
	status, _ := content["status"].(map[string]any)
	return len(status) > 0
}

// Run executes a schedule, in a bubble of its own.
func Run(
	t *testing.T, m *Machine, s inject.Schedule, v Variation, log *explain.Timeline,
) (o judge.Outcome, learned Lessons) {
	var r *run
	complete := false
	defer func() {
		if r != nil {
			learned = r.lessons
		}
	}()
	defer func() {
		if recovered := recover(); recovered != nil {
			message := fmt.Sprint(recovered)
			if r == nil || !strings.Contains(message, "deadlock") {
				panic(recovered)
			}
			if _, off := m.Judged.Off[finding.OracleLeaks]; off && complete {
				return // what is left of the process cannot change the outcome
			}
			r.oracles.Leaks.Deadlocked()
			o = r.outcome()
		}
	}()
	watchdog := time.AfterFunc(StuckTime, func() { WarnStuck(t.Name()) })
	defer watchdog.Stop()
	synctest.Test(t, func(*testing.T) {
		r = newRun(m, s, v, log)
		r.execute()
		r.end()
		o, complete = r.outcome(), true
	})
	return o, learned
}

// StuckTime is how long a run may take, in real time, until a warning is printed.
var StuckTime = 30 * time.Second

// WarnStuck prints the warning.
var WarnStuck = func(test string) {
	fmt.Fprintf(os.Stderr, "%s: a run is stuck for %s; most runs take less than a millisecond. Does a goroutine wait for "+
		"a lock that is held across a request, for the network, or for an event outside of the scenario? SIGQUIT prints "+
		"its stack.\n", test, StuckTime)
}

// end ends the process, and so all that it has started.
func (r *run) end() {
	r.world.Over, r.world.Ended = true, r.world.Now()
	wait := leakTime
	for _, p := range r.processes {
		p.die()
		if p.election != nil {
			wait = max(wait, p.election.LeaseDuration) // requests for the lease have deadlines
		}
	}
	// A goroutine that waits for an event that will happen is not a leak.
	time.Sleep(wait)
	synctest.Wait()
}

// leakTime is how long goroutines may take to end.
const leakTime = 10 * time.Second

func (r *run) outcome() judge.Outcome {
	return judge.Outcome{
		Violations: r.verdict.Violations, Advices: r.verdict.Advices, Points: r.faults.points, Injected: r.faults.injected,
		Settled: r.trace.Settled, SettledAt: r.trace.SettledAt, SettledErrs: r.trace.SettledErrs,
		Warnings: r.trace.Warnings(), Skipped: r.users.skipped, Reconciles: r.trace.Reconciles,
		Ledger: r.oracles.Duplicates.Ledger, Readies: r.oracles.Status.Readies, NoOps: r.trace.NoOps,
		Requests: r.trace.Requests, Processes: r.processes.last(), Starts: r.faults.starts,
	}
}
