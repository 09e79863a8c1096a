// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
)

// reconcileOf reconciles an object that exists.
type reconcileOf[T client.Object] func(ctx context.Context, c client.Client, obj T) (reconcile.Result, error)

// setupOf returns the set-up of a program with one controller for a kind, which also watches objects of other kinds and
// of the same name.
func setupOf[T client.Object](
	name string, kind T, do reconcileOf[T], others ...client.Object,
) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		c := mgr.GetClient()
		b := ctrl.NewControllerManagedBy(mgr).Named(name).For(kind).WithOptions(controller.Options{
			SkipNameValidation: new(true),
		})
		for _, obj := range others {
			b = b.Watches(obj, handler.EnqueueRequestsFromMapFunc(func(
				_ context.Context, obj client.Object,
			) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
			}))
		}
		return b.Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			obj := kind.DeepCopyObject().(T)
			if err := c.Get(ctx, req.NamespacedName, obj); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return do(ctx, c, obj)
		}))
	}
}

// setups returns a set-up with several controllers.
func setups(all ...func(manager.Manager) error) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		for _, setup := range all {
			if err := setup(mgr); err != nil {
				return err
			}
		}
		return nil
	}
}

// countingScenario has two programs that count each generation of a secret in an annotation that they share. An update
// of another version than was read conflicts only if locked is set.
func countingScenario(locked bool) Scenario {
	count := func(name string) func(manager.Manager) error {
		return setupOf(name, &corev1.Secret{}, func(
			ctx context.Context, c client.Client, secret *corev1.Secret,
		) (reconcile.Result, error) {
			if secret.Annotations[name] == string(secret.Data["value"]) {
				return reconcile.Result{}, nil
			}
			before := secret.DeepCopy()
			n, _ := strconv.Atoi(secret.Annotations["count"])
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "count", strconv.Itoa(n+1))
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, name, string(secret.Data["value"]))
			patch := client.MergeFrom(before)
			if locked {
				patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			}
			return reconcile.Result{}, c.Patch(ctx, secret, patch)
		})
	}
	s := controllerScenario(false)
	s.Setup = count("first")
	s.Programs = []Program{{Name: "second", Setup: count("second")}}
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	return s
}

// TestProgramsOvertake finds a bug that needs a reconcile of one program between a read and a write of another one. Its
// schedule is replayed.
func TestProgramsOvertake(t *testing.T) {
	s := countingScenario(false)
	f := foundIn(t, s)
	if f == nil {
		t.Fatal("nothing was found")
	}
	if f.Violation.Oracle != OracleEndState || len(f.schedule) != 1 {
		t.Errorf("got %s", f)
	}
	decoded, _, err := inject.Decode(f.Replay)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := referred(t, s)
	again := p.try(t, decoded, nil)
	if len(again.Violations) == 0 || again.Violations[0].String() != f.Violation.String() {
		t.Errorf("the replay of %s: %v", f.Replay, again.Violations)
	}
	if f := foundIn(t, countingScenario(true)); f != nil {
		t.Errorf("with a lock: %s", f)
	}
}

// TestProgramsHaveFaults checks that all kinds of faults apply to each program, that points name it, and that it is
// restarted alone.
func TestProgramsHaveFaults(t *testing.T) {
	p, reference := referred(t, countingScenario(true))
	faults := map[string]inject.Set{}
	for _, m := range reference.Points {
		faults[m.Program] |= m.Faults
	}
	for _, fault := range []Fault{
		FaultCrashBefore, FaultTimeoutApplied, FaultConflict, FaultHandOver, FaultLagRead, FaultResync, FaultRestart,
	} {
		for _, program := range []string{"", "second"} {
			if !faults[program].Has(fault) {
				t.Errorf("%s does not apply to the program %q", fault, program)
			}
		}
	}
	if !faults[""].Has(FaultOvertaken) {
		t.Error("no reconcile of the first program is overtaken by one of the second")
	}
	at := slices.IndexFunc(reference.Points, func(m inject.Injectable) bool {
		return m.Program == "second" && m.Faults.Has(FaultCrashAfter)
	})
	crash := inject.Deviation{Point: reference.Points[at].Point, Fault: FaultCrashAfter}
	if want := "crash-after at patch Secret default/a by second"; crash.String() != want {
		t.Errorf("got %q, want %q", crash, want)
	}
	log := &explain.Timeline{}
	o := p.execute(t, inject.Schedule{crash}, p.usual(), log)
	if len(o.Violations) > 0 || o.Injected != 1 {
		t.Fatal(o.Violations, o.Injected)
	}
	if first, second := o.Processes[0].Number, o.Processes[1].Number; first != 1 || second != 2 {
		t.Errorf("processes %d and %d, want 1 and 2", first, second)
	}
	if !slices.ContainsFunc(
		log.Entries, func(e explain.Entry) bool { return e.Who == "second" && e.What == "starts again" },
	) {
		t.Errorf("the timeline does not name the program that starts again:\n%s", log.Full())
	}
	if !slices.ContainsFunc(log.Entries, func(e explain.Entry) bool {
		return strings.HasPrefix(e.Who, "reconcile ") && strings.HasSuffix(e.Who, " of second")
	}) {
		t.Error("no reconcile has the name of the program")
	}
}

// TestInvalidPrograms lists all problems.
func TestInvalidPrograms(t *testing.T) {
	s := copierScenario(false)
	setup := func(manager.Manager) error { return nil }
	s.World = []Actor{Deployments(BecomeReady)}
	s.Programs = []Program{
		{Setup: setup},
		{Name: "a"},
		{Name: "user", Setup: setup},
		{Name: "b", Setup: setup},
		{Name: "b", Setup: setup},
		{Name: s.World[0].Name, Setup: setup, Uncached: []client.Object{nil}, Webhooks: []client.Object{&corev1.Secret{}}},
	}
	_, err := newPlan(s)
	for _, want := range []string{
		"Programs[0].Name is required", "Programs[1].Setup is required",
		`Programs[2].Name must not be "user", which is the name of another client`, `Programs[4].Name must not be "b"`,
		fmt.Sprintf("Programs[5].Name must not be %q", s.World[0].Name), "Programs[5].Uncached[0] is required",
		"Programs[5].Webhooks[0]: *v1.Secret is neither",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestProgramsInCertificate counts programs where there are several.
func TestProgramsInCertificate(t *testing.T) {
	for want, s := range map[string]Scenario{
		"converges under every single fault: 2 programs, ": countingScenario(true),
		"converges under every single fault: ":             controllerScenario(false),
	} {
		report := converges(t, s, Options{Seed: 1})
		if got := report.Certificate.String(); !strings.HasPrefix(got, want) ||
			strings.Contains(got, "programs") != (len(s.Programs) > 0) {
			t.Errorf("got %q, want it to begin with %q", got, want)
		}
	}
}
