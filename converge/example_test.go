// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// labeler sets a label of each Secret.
type labeler struct{ client.Client }

func (r *labeler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := r.Get(ctx, req.NamespacedName, secret); err != nil || secret.Labels["kept"] == "true" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret.Labels = map[string]string{"kept": "true"}
	return ctrl.Result{}, r.Update(ctx, secret)
}

func (r *labeler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(r)
}

var token = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}}

// In a test, with the reconciler's own setup.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestLabelerConverges
		converge.Run(t, converge.Scenario{
			Scheme: scheme.Scheme,
			For:    &corev1.Secret{},
			Setup:  func(mgr ctrl.Manager) error { return (&labeler{mgr.GetClient()}).SetupWithManager(mgr) },
			Steps:  converge.Lifecycle(token, func(s *corev1.Secret) { s.Data = map[string][]byte{"value": []byte("2")} }),
		})
	}
}

// With a report instead of a failed test.
func ExampleCheck() {
	_ = func(t *testing.T, s converge.Scenario) {
		options := converge.DefaultOptions()
		options.Budget = time.Minute
		options.Pairs = -1
		report, err := converge.Check(t, s, options)
		if err != nil {
			t.Fatal(err) // the scenario is invalid
		}
		if report.Failure != nil {
			t.Log(report.Failure.Replay, report.Failure.Timeline())
		}
		t.Log(report.Certificate)
	}
}

// The values of the schema are not enough: only a theme that exists has an effect.
func ExampleStates() {
	_ = func(t *testing.T, s converge.Scenario) {
		s.Space = converge.Space{
			Values:  map[string][]any{"spec.theme": {"dark", "light"}},
			Skip:    map[string]string{"spec.class": "users never change it"},
			Ignored: map[string]string{"spec.description": "it is for people"},
			HistoryDependent: []converge.HistoryDependent{{
				Object: &corev1.PersistentVolumeClaim{}, Field: "spec.resources.requests[storage]",
				Reason: "volumes cannot shrink",
			}},
		}
		converge.States(t, s)
	}
}

// With a report instead of a failed test, and a longer search.
func ExampleCheckStates() {
	_ = func(t *testing.T, s converge.Scenario) {
		options := converge.DefaultStatesOptions()
		options.Requests, options.Budget = 0, 10*time.Minute
		report, err := converge.CheckStates(t, s, options)
		if err != nil {
			t.Fatal(err) // the scenario is invalid
		}
		if report.Failure != nil {
			t.Log(report.Failure.Walk, report.Failure.Replay)
		}
		t.Log(report.Certificate)
	}
}

// Version 2 takes over from version 1 at any point, and version 1 takes over again.
func ExampleUpgrade() {
	_ = func(t *testing.T, setupVersion1, setupVersion2 func(ctrl.Manager) error) { // func TestUpgrade
		current := converge.Scenario{
			Scheme: scheme.Scheme,
			For:    &corev1.Secret{},
			Setup:  setupVersion2,
			Steps:  converge.Lifecycle(token),
		}
		old := current
		old.Setup = setupVersion1
		converge.Upgrade(t, old, current)
	}
}

// New is for a reconciler without a manager.
func ExampleScenario() {
	_ = converge.Scenario{
		Scheme: scheme.Scheme,
		New:    func(env converge.Env) reconcile.Reconciler { return &labeler{env.Client} },
		For:    &corev1.Secret{},
		Owns:   []client.Object{&corev1.ConfigMap{}},
		Given:  []client.Object{token},
		Without: map[converge.Fault]string{
			converge.FaultChildDeleted: "who deletes them wants them gone",
		},
		Off: map[converge.Oracle]string{
			converge.OracleIdempotence: "the nonce is renewed each time",
		},
	}
}

// An object is created, changed twice, and deleted, with a Settle after each step.
func ExampleLifecycle() {
	steps := converge.Lifecycle(token,
		func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
		func(s *corev1.Secret) { s.Labels = map[string]string{"tier": "fast"} },
	)
	fmt.Println(len(steps), "steps")
	// Output: 8 steps
}

// Users who do not wait.
func ExampleSteps() {
	newer := token.DeepCopy()
	newer.StringData = map[string]string{"value": "2"}
	_ = converge.Steps(
		converge.Apply(token),
		converge.Update(newer), // there is no time for anything in between
		converge.Settle(),
		converge.Change(token, func(s *corev1.Secret) { s.Immutable = new(true) }),
		converge.Sleep(time.Minute),
		converge.Do("delete all", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("default"))
		}),
		converge.Settle(),
		converge.Delete(token), // is gone already, which is fine
		converge.Settle(),
	)
}

// Another controller, which binds claims.
func ExampleActor() {
	_ = converge.Actor{
		Name: "binder",
		For:  &corev1.PersistentVolumeClaim{},
		Act: func(ctx context.Context, c client.Client, obj client.Object) error {
			claim := obj.(*corev1.PersistentVolumeClaim)
			if claim.Status.Phase == corev1.ClaimBound {
				return nil // or it would find no end
			}
			claim.Status.Phase = corev1.ClaimBound
			return c.Status().Update(ctx, claim)
		},
	}
}

// Deployments become ready, StatefulSets do not, and Jobs complete.
func ExampleDeployments() {
	_ = converge.Scenario{
		World: []converge.Actor{
			converge.Deployments(converge.BecomeReady),
			converge.StatefulSets(converge.Fail),
			converge.Jobs(converge.BecomeReady),
		},
	}
}

// Pods start and claims are bound, for a reconciler that creates both itself.
func ExamplePods() {
	_ = converge.Scenario{
		World: []converge.Actor{converge.Pods(converge.BecomeReady), converge.PersistentVolumeClaims()},
	}
}

// A reconciler creates buckets outside of the cluster. It adopts a bucket of an earlier attempt.
func ExampleCloud() {
	_ = func(ctx context.Context, env converge.Env, secret *corev1.Secret) error {
		bucket := "bucket " + secret.Name
		if secret.DeletionTimestamp != nil {
			if err := env.Cloud.Delete(ctx, bucket); !errors.Is(err, converge.ErrAbsent) {
				return err
			}
			return nil
		}
		return env.Cloud.Put(ctx, bucket, string(secret.UID))
	}
}

// Each call of an existing fake becomes an injection point.
func ExampleEnv_Call() {
	sent := map[string]bool{} // emptied by Scenario.Reset
	_ = func(ctx context.Context, env converge.Env, address string) error {
		return env.Call(ctx, "send mail to "+address, func() error {
			sent[address] = true
			return nil
		})
	}
}

// The environment, for a reconciler with its own setup.
func ExampleEnvOf() {
	_ = converge.Scenario{
		Setup: func(mgr ctrl.Manager) error {
			env := converge.EnvOf(mgr)
			r := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				return ctrl.Result{}, env.Cloud.Put(ctx, req.String(), "seen")
			})
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(r)
		},
	}
}

// A field of all kinds, and one of all containers of Deployments.
func ExampleMask() {
	_ = converge.Scenario{
		Masks: []converge.Mask{
			{Field: "metadata.annotations[example.com/nonce]"},
			{Object: &appsv1.Deployment{}, Field: "spec.template.spec.containers.image"},
		},
	}
}

// Does it help if each request waits for the writes of the last one?
func ExampleConsistency() {
	_ = converge.Scenario{Consistency: converge.Gate}
}

// Any number of Jobs is correct, if one has completed.
func ExampleState() {
	_ = converge.Scenario{
		Desired: func(s converge.State) error {
			jobs := &batchv1.JobList{}
			if err := s.List(jobs, client.InNamespace("default")); err != nil {
				return err
			}
			for _, job := range jobs.Items {
				if job.Status.Succeeded > 0 {
					return nil
				}
			}
			return fmt.Errorf("none of %d jobs has completed", len(jobs.Items))
		},
	}
}

// The same users do the same in a cluster, for example in a sandbox.
func ExampleStep_Perform() {
	inCluster := func(ctx context.Context, s converge.Scenario, c client.Client) error {
		wait := func(context.Context, time.Duration) error {
			return nil // until the controller is idle
		}
		for _, step := range s.Steps {
			if err := step.Perform(ctx, c, wait); err != nil {
				return err
			}
		}
		return nil
	}
	_ = inCluster
}

// A controller did something wrong in a cluster. Its console has written what it saw and did to a file.
func ExampleFromRecording() {
	test := func(t *testing.T) {
		s, err := converge.FromRecording("testdata/recordings/orders.json", converge.Scenario{
			Scheme: scheme.Scheme,
			Setup:  func(mgr ctrl.Manager) error { return (&labeler{mgr.GetClient()}).SetupWithManager(mgr) },
		})
		if err != nil {
			t.Fatal(err)
		}
		converge.Run(t, s)
	}
	_ = test // TestOrders
}
