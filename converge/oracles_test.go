// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// secretScenario reconciles a secret, which is created, changed and deleted.
func secretScenario(do func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error)) Scenario {
	s := copierScenario(false)
	s.New = func(e Env) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			secret := &corev1.Secret{}
			if err := e.Client.Get(ctx, req.NamespacedName, secret); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return do(ctx, e, secret)
		})
	}
	return s
}

// configMapOf returns a config map with the name and the value of a secret.
func configMapOf(secret *corev1.Secret, owned bool) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: secret.Name,
		}, Data: map[string]string{"value": string(secret.Data["value"])},
	}
	if owned {
		_ = controllerutil.SetControllerReference(secret, configMap, scheme.Scheme)
	}
	return configMap
}

// TestEachOracle violates each oracle, and checks the hint.
func TestEachOracle(t *testing.T) {
	for name, c := range map[string]struct {
		reconcile func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error)
		oracle    Oracle
		message   string
		hint      string
	}{
		"quiescence: a write each time": {func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "seen", secret.ResourceVersion)
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}, OracleQuiescence, "did not converge after 200 reconciles", "each reconcile changes an object"},
		"quiescence: it does not return": {func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
			time.Sleep(48 * time.Hour)
			return reconcile.Result{}, nil
		}, OracleQuiescence, "the reconcile of default/a does not return", "a reconcile must not wait"},
		"end state: an error is swallowed": {func(
			ctx context.Context, e Env, secret *corev1.Secret,
		) (reconcile.Result, error) {
			_ = e.Client.Create(ctx, configMapOf(secret, true))
			return reconcile.Result{}, nil
		}, OracleEndState, "ConfigMap default/a is missing", "an error is swallowed"},
		"idempotence: a time in the data": {func(
			ctx context.Context, e Env, secret *corev1.Secret,
		) (reconcile.Result, error) {
			configMap := configMapOf(secret, true)
			_, err := controllerutil.CreateOrUpdate(ctx, e.Client, configMap, func() error {
				configMap.Data = map[string]string{"time": time.Now().Truncate(time.Minute).Format(time.RFC3339)}
				return nil
			})
			return reconcile.Result{}, err
		}, OracleIdempotence, "writes: modified ConfigMap default/a", "compare before writing"},
		"idempotence: times in two objects": {func(
			ctx context.Context, e Env, secret *corev1.Secret,
		) (reconcile.Result, error) {
			for _, name := range []string{"a", "b"} {
				configMap := configMapOf(secret, true)
				configMap.Name = name
				if _, err := controllerutil.CreateOrUpdate(ctx, e.Client, configMap, func() error {
					configMap.Data = map[string]string{"time": time.Now().Truncate(time.Minute).Format(time.RFC3339)}
					return nil
				}); err != nil {
					return reconcile.Result{}, err
				}
			}
			return reconcile.Result{}, nil
		}, OracleIdempotence, "writes: modified ConfigMap default/a, modified ConfigMap default/b", "compare before writing"},
		"duplicates: deleted and created again": {func(
			ctx context.Context, e Env, secret *corev1.Secret,
		) (reconcile.Result, error) {
			configMap := configMapOf(secret, true)
			err := e.Client.Get(ctx, client.ObjectKeyFromObject(configMap), &corev1.ConfigMap{})
			if apierrs.IsNotFound(err) {
				err = e.Client.Create(ctx, configMap)
				if err != nil && e.Client.Delete(ctx, configMap) == nil {
					err = e.Client.Create(ctx, configMapOf(secret, true))
				}
			}
			return reconcile.Result{}, err
		}, OracleDuplicates, "ConfigMap default/a: 1 deleted, 0 without faults", "a creation that failed had taken effect"},
		"deletion: left over": {func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			return reconcile.Result{}, client.IgnoreAlreadyExists(e.Client.Create(ctx, configMapOf(secret, false)))
		}, OracleDeletion, "ConfigMap default/a is left over", "set an owner reference"},
		"deletion: a finalizer remains": {func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			if secret.DeletionTimestamp == nil && controllerutil.AddFinalizer(secret, "example.com/kept") {
				return reconcile.Result{}, e.Client.Update(ctx, secret)
			}
			return reconcile.Result{}, nil
		}, OracleDeletion, "Secret default/a still exists; finalizers: example.com/kept", "a finalizer is not removed"},
		"deletion: an effect before the finalizer": {func(
			ctx context.Context, e Env, secret *corev1.Secret,
		) (reconcile.Result, error) {
			switch {
			case secret.DeletionTimestamp == nil:
				if err := e.Cloud.Put(ctx, secret.Name, "there"); err != nil {
					return reconcile.Result{}, err
				}
				if controllerutil.AddFinalizer(secret, "example.com/kept") {
					return reconcile.Result{}, e.Client.Update(ctx, secret)
				}
			case controllerutil.RemoveFinalizer(secret, "example.com/kept"):
				if err := e.Cloud.Delete(ctx, secret.Name); err != nil && !errors.Is(err, ErrAbsent) {
					return reconcile.Result{}, err
				}
				return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
			}
			return reconcile.Result{}, nil
		}, OracleDeletion, "no finalizer yet at the first effect outside of the cluster: cloud put a", "store the finalizer"},
		"idempotence: something that is due": {func(
			ctx context.Context, e Env, secret *corev1.Secret,
		) (reconcile.Result, error) {
			if time.Since(secret.CreationTimestamp.Time) < time.Minute || secret.Labels["old"] != "" {
				return reconcile.Result{}, nil
			}
			secret.Labels = map[string]string{"old": "yes"}
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}, OracleIdempotence, "writes: modified Secret default/a, which was due before", "is there a watch"},
		"errors: a panic": {
			func(_ context.Context, _ Env, secret *corev1.Secret) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Duration(len(secret.Name) / len(secret.Finalizers))}, nil
			}, OracleErrors, "the reconcile of default/a panics: runtime error: integer divide by zero",
			"check for fields that may be empty",
		},
		"errors: a terminal one": {func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
			if err := client.IgnoreAlreadyExists(e.Client.Create(ctx, configMapOf(secret, true))); err != nil {
				return reconcile.Result{}, reconcile.TerminalError(err)
			}
			return reconcile.Result{}, nil
		}, OracleErrors, "returns a terminal error for a temporary one", "a terminal error is not retried"},
		"shared objects": {func(ctx context.Context, e Env, _ *corev1.Secret) (reconcile.Result, error) {
			list := &corev1.SecretList{}
			if err := e.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
				return reconcile.Result{}, err
			}
			for i := range list.Items {
				list.Items[i].Data["value"][0] = 'x'
			}
			return reconcile.Result{}, nil
		}, OracleSharedObjects, "Secret default/a of the cache was modified", "copy objects"},
		"leaks": {func(context.Context, Env, *corev1.Secret) (reconcile.Result, error) {
			go func() { <-make(chan struct{}) }()
			return reconcile.Result{}, nil
		}, OracleLeaks, "goroutines of the reconciler outlive the process", "when the context ends"},
	} {
		t.Run(name, func(t *testing.T) {
			report := mustCheck(t, secretScenario(c.reconcile), DefaultOptions())
			f := report.Failure
			if f == nil {
				t.Fatalf("no failure: %s", report.Certificate)
			}
			if f.Violation.Oracle != c.oracle ||
				!strings.Contains(f.Violation.Message+strings.Join(f.Violation.Details, ""), c.message) {
				t.Errorf("got %s, want %s: … %s …", f.Violation, c.oracle, c.message)
			}
			if !strings.Contains(f.Hint, c.hint) {
				t.Errorf("the hint is %q, want … %s …", f.Hint, c.hint)
			}
		})
	}
}

// TestOraclesThatAreOff checks that an oracle that is off reports nothing.
func TestOraclesThatAreOff(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{}, client.IgnoreAlreadyExists(e.Client.Create(ctx, configMapOf(secret, false)))
	})
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Delete(newSecret("a")), Settle())
	s.Off = map[Oracle]string{OracleDeletion: "config maps are kept"}
	s.Without = map[Fault]string{FaultTaken: "names are ours", FaultChildDeleted: "no other client deletes them"}
	p := mustPlan(t, s)
	report := p.check(t, DefaultOptions())
	if report.Failure != nil {
		t.Fatalf("a violation was reported:\n%s", report.Failure)
	}
	for _, want := range []string{"without O5 deletion: config maps are kept", "without taken: names are ours"} {
		if !strings.Contains(p.certificate(report), want) {
			t.Errorf("the certificate does not say %q:\n%s", want, p.certificate(report))
		}
	}
}

// conditionScenario reconciles pods, which have a status.
func conditionScenario(do func(ctx context.Context, e Env, pod *corev1.Pod) error) Scenario {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: "a"}},
		},
	}
	return Scenario{
		Scheme: scheme.Scheme, For: &corev1.Pod{},
		New: func(e Env) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				pod := &corev1.Pod{}
				if err := e.Client.Get(ctx, req.NamespacedName, pod); err != nil || pod.DeletionTimestamp != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				return reconcile.Result{}, do(ctx, e, pod)
			})
		},
		Steps: Steps(Apply(pod), Settle(), Do("change the image", func(ctx context.Context, c client.Client) error {
			return c.Patch(
				ctx, pod.DeepCopy(),
				client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"activeDeadlineSeconds":100}}`)),
			)
		}), Settle()),
	}
}

// TestObservedGeneration finds statuses that name another generation.
func TestObservedGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		observed func(pod *corev1.Pod) int64
		want     string
	}{
		"ahead":   {func(pod *corev1.Pod) int64 { return pod.Generation + 1 }, "observedGeneration is 2, of generation 1"},
		"behind":  {func(*corev1.Pod) int64 { return 1 }, "observedGeneration is 1, of generation 2"},
		"correct": {func(pod *corev1.Pod) int64 { return pod.Generation }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := foundIn(t, conditionScenario(func(ctx context.Context, e Env, pod *corev1.Pod) error {
				if pod.Status.ObservedGeneration == c.observed(pod) {
					return nil
				}
				pod.Status.ObservedGeneration = c.observed(pod)
				return e.Client.Status().Update(ctx, pod)
			}))
			switch {
			case c.want == "" && f != nil:
				t.Errorf("a false positive:\n%s", f)
			case c.want != "" && (f == nil || f.Violation.Cause != CauseObservedGeneration ||
				!strings.Contains(f.Violation.Message, c.want)):
				t.Errorf("got %v, want %s", f, c.want)
			}
		})
	}
}

// TestAdvice reports a delete of an object that is not in the cache, which does no harm here, and nothing if the delete
// has a precondition.
func TestAdvice(t *testing.T) {
	safe := false
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		wanted := secret.Data["value"][0] == '1'
		configMap := configMapOf(secret, true)
		switch err := e.Client.Get(ctx, client.ObjectKeyFromObject(configMap), configMap); {
		case apierrs.IsNotFound(err) && wanted:
			return reconcile.Result{}, e.Client.Create(ctx, configMapOf(secret, true))
		case err != nil || wanted:
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		var options []client.DeleteOption
		if safe {
			options = append(options, client.Preconditions{UID: &configMap.UID})
		}
		return reconcile.Result{}, client.IgnoreNotFound(e.Client.Delete(ctx, configMap, options...))
	})
	report := converges(t, s, DefaultOptions())
	want := []string{
		"the delete of ConfigMap default/a deletes another object than that of the cache: use a precondition with its UID",
	}
	if diff := cmp.Diff(want, report.Certificate.Advice); diff != "" {
		t.Errorf("advice (-want +got):\n%s", diff)
	}
	s.Strict = true
	if report = mustCheck(t, s, DefaultOptions()); report.Failure == nil ||
		report.Failure.Violation.Oracle != OracleAdvice || report.Failure.Violation.Cause != CauseUnconditionalDelete {
		t.Errorf("strict: got %v, want the advice", report.Failure)
	}
	safe = true
	if report = mustCheck(t, s, DefaultOptions()); report.Failure != nil {
		t.Errorf("strict, with a precondition: got %v, want no advice", report.Failure)
	}
}

// TestStaleCacheAndExternalSystem removes a member from a ring that a stale cache lacks, and adds it again later.
func TestStaleCacheAndExternalSystem(t *testing.T) {
	s := secretScenario(nil)
	s.Consistency = TimeTravel
	s.New = func(e Env) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			members := &corev1.SecretList{}
			if err := e.Client.List(ctx, members); err != nil {
				return reconcile.Result{}, err
			}
			wanted := map[string]bool{}
			for _, member := range members.Items {
				wanted[member.Name] = true
				if err := e.Cloud.Put(ctx, member.Name, "member"); err != nil {
					return reconcile.Result{}, err
				}
			}
			known, err := e.Cloud.List(ctx, "")
			for _, name := range known {
				if !wanted[name] {
					err = errors.Join(err, e.Cloud.Delete(ctx, name))
				}
			}
			return reconcile.Result{}, err
		})
	}
	s.Steps = Steps(Apply(newSecret("a")), Settle(), Apply(newSecret("b")), Settle())
	report := mustCheck(t, s, Options{Seed: 1})
	if f := report.Failure; f == nil || f.Violation.Message != "cloud b: 1 deleted, 0 without faults" ||
		f.schedule[0].Fault != FaultStaleStart {
		t.Errorf("got %v, want that b is deleted because of a stale list", f)
	}
}

// TestReadyBeforeDependents sets Ready before another object, in the cluster or outside of it, exists.
func TestReadyBeforeDependents(t *testing.T) {
	for name, create := range map[string]func(ctx context.Context, e Env, budget client.Object) error{
		"cloud address": func(ctx context.Context, e Env, _ client.Object) error {
			return e.Cloud.Put(ctx, "address", "a")
		},
		"ConfigMap default/page": func(ctx context.Context, e Env, budget client.Object) error {
			page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "page"}}
			if err := controllerutil.SetControllerReference(budget, page, scheme.Scheme); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(e.Client.Create(ctx, page))
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := mustCheck(t, readyScenario(true, create), Options{Seed: 1})
			if f := report.Failure; f == nil || f.Violation.Oracle != OracleStatus ||
				f.Violation.Message != "PodDisruptionBudget default/a is Ready before "+name+" exists" {
				t.Errorf("got %v, want that it is Ready too early", f)
			}
			converges(t, readyScenario(false, create), Options{Seed: 1})
		})
	}
}

// readyScenario sets Ready before or after something is created.
func readyScenario(early bool, create func(ctx context.Context, e Env, budget client.Object) error) Scenario {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	return Scenario{
		Scheme: scheme.Scheme, For: budget, Owns: []client.Object{&corev1.ConfigMap{}},
		Steps: Steps(Apply(budget), Settle()),
		New: func(e Env) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				found := &policyv1.PodDisruptionBudget{}
				if err := e.Client.Get(ctx, req.NamespacedName, found); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				ready := len(found.Status.Conditions) > 0
				if ready || !early {
					if err := create(ctx, e, found); err != nil || ready {
						return reconcile.Result{}, err
					}
				}
				found.Status.Conditions = []metav1.Condition{
					{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Soon", LastTransitionTime: metav1.Now()},
				}
				return reconcile.Result{}, e.Client.Status().Update(ctx, found)
			})
		},
	}
}
