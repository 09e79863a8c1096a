// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
)

// tenCalls creates three ConfigMaps and a Service for a Secret with ten calls, and checks them with six.
type tenCalls struct{ client.Client }

func (r *tenCalls) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wanted := []client.Object{&corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}}
	for range 3 {
		wanted = append(wanted, &corev1.ConfigMap{Data: map[string]string{"value": string(secret.Data["value"])}})
	}
	for n, obj := range wanted {
		obj.SetNamespace(secret.Namespace)
		obj.SetName(fmt.Sprintf("%s-%d", secret.Name, n))
		err := r.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
		if apierrs.IsNotFound(err) {
			if err := controllerutil.SetControllerReference(secret, obj, scheme.Scheme); err != nil {
				return reconcile.Result{}, err
			}
			err = r.Create(ctx, obj)
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, r.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(secret.Namespace))
}

// tenCallsScenarios are the scenarios of a reconciler that is called directly, and by a controller.
func tenCallsScenarios() map[string]Scenario {
	s := Scenario{Scheme: scheme.Scheme, For: &corev1.Secret{}, Given: []client.Object{newSecret("a")}}
	direct, controller := s, s
	direct.New = func(e Env) reconcile.Reconciler { return &tenCalls{e.Client} }
	direct.Owns = []client.Object{&corev1.ConfigMap{}, &corev1.Service{}}
	controller.Setup = func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).
			Complete(&tenCalls{mgr.GetClient()})
	}
	return map[string]Scenario{"direct": direct, "controller": controller}
}

// BenchmarkSchedule executes schedules of one fault, another one each time. The reconciler makes ten calls if nothing
// exists yet.
func BenchmarkSchedule(b *testing.B) {
	for name, s := range tenCallsScenarios() {
		b.Run(name, func(b *testing.B) {
			inTest(b, func(t *testing.T) {
				p, reference := referred(t, s)
				singles := inject.CandidatesOf(reference.Points)
				defer search.Tune(t)()
				b.ReportAllocs()
				n, before := 0, processorTime()
				for b.Loop() {
					if o := p.execute(t, inject.Schedule{singles[n%len(singles)]}, p.usual(), nil); len(o.Violations) > 0 {
						b.Fatal(singles[n%len(singles)], o.Violations)
					}
					n++
				}
				b.ReportMetric(float64(n)/(processorTime()-before).Seconds(), "schedules/s/core")
			})
		})
	}
}

// BenchmarkRun is the run without faults.
func BenchmarkRun(b *testing.B) {
	for name, s := range tenCallsScenarios() {
		b.Run(name, func(b *testing.B) {
			inTest(b, func(t *testing.T) {
				p := mustPlan(t, s)
				b.ReportAllocs()
				for b.Loop() {
					p.execute(t, nil, p.usual(), nil)
				}
			})
		})
	}
}

// BenchmarkDifferences compares two states of 20 objects, where one object has a field that differs in each run.
func BenchmarkDifferences(b *testing.B) {
	p := mustPlan(b, tenCallsScenarios()["direct"])
	state := func(password string) *state.Snapshot {
		secrets := []client.Object{newSecret("a")}
		secrets[0].(*corev1.Secret).Data["password"] = []byte(password)
		var deployments []client.Object
		for n := range 19 {
			deployments = append(deployments, deploymentOf(newSecret(fmt.Sprint("a-", n))))
		}
		return &state.Snapshot{
			Kinds: []schema.GroupVersionKind{
				corev1.SchemeGroupVersion.WithKind("Secret"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
			},
			Objects: [][]client.Object{secrets, deployments},
		}
	}
	want, masked := state("1"), map[string]bool{"Secret default/a:data.password": true}
	b.ReportAllocs()
	for b.Loop() {
		if found := p.reader().Differences(want, state("2"), masked); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

// processorTime is the processor time of the process. Other processes may keep the processors busy meanwhile.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// inTest calls a function that needs a test from a benchmark.
func inTest(b *testing.B, do func(t *testing.T)) {
	all := func(string, string) (bool, error) { return true, nil }
	called := false
	once := func(t *testing.T) { // -count also repeats tests
		if !called {
			called = true
			do(t)
		}
	}
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: once}}) {
		b.Fail()
	}
}
