// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/converge/internal/inject"
)

// run executes one schedule of a scenario. It connects the parts that do: users perform steps, the loop decides what
// happens next, the gateway answers calls of the process, watches forward events, the injector injects faults, and
// oracles check the trace and the world.
//
// A run belongs to the goroutine that has created it, in one bubble of testing/synctest.
type run struct {
	plan     *plan
	schedule inject.Schedule
	ctx      context.Context

	world     world
	trace     trace
	scheduler scheduler
	faults    injector
	watches   watches
	gateway   gateway
	users     users
	others    otherClient
	actors    actors
	// converter is the conversion webhook that was registered last, by whatever version.
	converter http.Handler
	// lessons are what the run teaches.
	lessons lessons
	// probesRoles is set if the run finds out which rules of roles are missing.
	probesRoles bool
	// reportedConversion is set when a failed conversion was reported.
	reportedConversion bool
	oracles            oracles
	verdict

	// processes has the present process of each program, in the order of the programs.
	processes processes
	// requested are the requests since the last Settle, in their order.
	requested []request
	// listOrder is the order of lists from caches, or 0 if they are sorted.
	listOrder int
}

// variation distinguishes runs without faults, to find out what depends on time, versions, UIDs or chance.
type variation struct {
	seed  uint64
	delay time.Duration
	// versions is the number of resource versions that were used before.
	versions int
	// skip are the indexes of the Settles that users do not wait for.
	skip []int
	// twice reconciles all objects again twice at each Settle, instead of once.
	twice bool
	// slow delays actors until everything else is idle, and reverse lets them act in the opposite order.
	slow, reverse bool
	// lateGarbage delays the garbage collector until everything else is idle.
	lateGarbage bool
	// probesRoles allows what the roles do not, and reports all missing rules in the end.
	probesRoles bool
	// unmarked removes the annotation of the other client at once, so that a conflict leaves nothing but another version.
	unmarked bool
}

// newRun starts a run: the API server has the given objects, and the process has started.
func newRun(p *plan, s inject.Schedule, v variation, log *timeline) *run {
	time.Sleep(v.delay)
	if p.Reset != nil {
		p.Reset()
	}
	r := &run{plan: p, schedule: s, ctx: context.Background(), probesRoles: v.probesRoles}
	r.world = newWorld(p, v.seed, &webhooks{r}, r.convert)
	r.trace = trace{timeline: log}
	log.observe(&r.world)
	r.verdict = verdict{plan: p, trace: &r.trace, running: p.of(1)}
	r.scheduler = newScheduler(p, &r.trace)
	r.faults = newInjector(p, s, &r.world, &r.trace)
	r.oracles = newOracles(
		evidence{verdict: &r.verdict, plan: p, world: &r.world, trace: &r.trace}, &r.scheduler, s, v.twice,
	)
	r.watches, r.gateway, r.others = watches{run: r}, gateway{run: r}, otherClient{run: r, unmarked: v.unmarked}
	r.users = users{run: r, skip: v.skip, unsettled: map[types.NamespacedName]int{}}
	r.actors = actors{run: r, slow: v.slow, reverse: v.reverse, lateGarbage: v.lateGarbage}
	for _, actor := range p.actors {
		r.actors.list = append(r.actors.list, &actorState{actorOf: actor, client: r.world.server.Client(actor.Name)})
	}
	r.age(v.versions)
	r.give()
	var err error
	if r.world.given, err = p.outside(); err != nil {
		r.violate(scenarioFailure("Outside: " + err.Error()))
	}
	for order := 1; order <= 3; order++ {
		at := inject.Site{Act: "lists", Key: types.NamespacedName{Name: fmt.Sprint("order ", order)}}
		if r.faults.at(at, inject.SetOf(FaultListOrder)) == FaultListOrder {
			r.listOrder = order
		}
	}
	first := p.of(1)
	for _, program := range first.programs {
		if p.upgrade != nil {
			r.trace.start(program, 1, first.version)
		}
		if !r.failed() {
			r.start(program, 1)
		}
	}
	return r
}

// age uses some resource versions.
func (r *run) age(versions int) {
	for n := range versions {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		obj.SetNamespace(metav1.NamespaceDefault)
		obj.SetName("converge-" + strconv.Itoa(n))
		if err := errors.Join(r.world.user.Create(r.ctx, obj), r.world.user.Delete(r.ctx, obj)); err != nil {
			r.violate(scenarioFailure(err.Error()))
			return
		}
	}
	r.world.forwarded = r.world.server.Version()
}

// give creates the objects that exist before the controller starts.
func (r *run) give() {
	for i, given := range r.plan.Given {
		obj := given.DeepCopyObject().(client.Object)
		obj.SetResourceVersion("")
		if err := r.world.user.Create(r.ctx, obj); err != nil {
			r.violate(scenarioFailure(fmt.Sprintf("Given[%d]: %v", i, err)))
			return
		}
		gvk, err := apiutil.GVKForObject(given, r.plan.Scheme)
		if kind, ok := r.plan.of(1).registry.For(gvk); err != nil || !ok || !kind.Status || !hasStatus(given) {
			continue
		}
		withStatus := given.DeepCopyObject().(client.Object)
		withStatus.SetResourceVersion(obj.GetResourceVersion())
		if err := r.world.user.Status().Update(r.ctx, withStatus); err != nil {
			r.violate(scenarioFailure(fmt.Sprintf("Given[%d]: status: %v", i, err)))
			return
		}
	}
	r.watches.forward()
}

// execute performs the steps, and checks the whole run.
func (r *run) execute() {
	if r.failed() {
		return
	}
	r.users.perform()
	r.reportMissingRules()
	r.reportConversions()
	if !r.failed() {
		r.oracles.ended(
			r.users.skipped, r.users.merged, len(r.schedule) == 0 && r.plan.recordsReference() && len(r.users.skip) == 0,
		)
	}
}

// wake wakes up the loop.
func (r *run) wake() { r.scheduler.wake() }
