// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/inject"
)

// TestFaultsFindBugs finds mistakes with a single fault each, and nothing in the same reconcilers without the mistake.
// It has what lab/corpus lacks: an update without a version, and faults that find none of its mistakes alone.
// docs/converge/faults.md links to both.
func TestFaultsFindBugs(t *testing.T) {
	for fault, c := range map[Fault]struct {
		wrong, right Scenario
		oracle       Oracle
	}{
		FaultConflict:    {overwritingScenario(true), overwritingScenario(false), OracleEndState},
		FaultRestart:     {rememberingScenario(true), rememberingScenario(false), OracleDuplicates},
		FaultLate:        {judgingScenario(true), judgingScenario(false), OracleEndState},
		FaultEarly:       {waitingScenario(true), waitingScenario(false), OracleEndState},
		FaultResync:      {repeatingScenario(true), repeatingScenario(false), OracleIdempotence},
		FaultKindRemoved: {optionalScenario(t, true), optionalScenario(t, false), OracleEndState},
		FaultPause:       {impatientScenario(true), impatientScenario(false), OracleEndState},
	} {
		t.Run(string(fault), func(t *testing.T) {
			c.wrong.Without = map[Fault]string{}
			for _, other := range inject.All {
				if other != fault {
					c.wrong.Without[other] = "the case is about another fault"
				}
			}
			report := mustCheck(t, c.wrong, Options{Seed: 1})
			switch f := report.Failure; {
			case f == nil:
				t.Errorf("the mistake is not found: %s", report.Certificate)
			case f.Violation.Oracle != c.oracle || !strings.Contains(f.Replay, ":"+string(fault)+"@"):
				t.Errorf("found by %s, want %s:\n%s", f.Violation.Oracle, c.oracle, f)
			}
			if report = mustCheck(t, c.right, Options{Seed: 1}); report.Failure != nil {
				t.Errorf("the correct reconciler fails: %s", report.Failure)
			}
		})
	}
}

// ownedScenario reconciles a secret that exists, and is neither changed nor deleted.
func ownedScenario(do func(ctx context.Context, e Env, secret *corev1.Secret) error) Scenario {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		return reconcile.Result{}, do(ctx, e, secret)
	})
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	return s
}

// overwritingScenario copies the value of a secret, which changes. If it is wrong, its updates have no version.
func overwritingScenario(wrong bool) Scenario {
	s := ownedScenario(func(ctx context.Context, e Env, secret *corev1.Secret) error {
		configMap, value := &corev1.ConfigMap{}, string(secret.Data["value"])
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), configMap)
		if apierrs.IsNotFound(err) {
			return e.Client.Create(ctx, configMapOf(secret, true))
		}
		if err != nil || configMap.Data["value"] == value {
			return err
		}
		configMap.Data = map[string]string{"value": value}
		if wrong {
			configMap.ResourceVersion = ""
		}
		return e.Client.Update(ctx, configMap)
	})
	s.Steps = append(s.Steps, Change(newSecret("a"), func(s *corev1.Secret) {
		s.Data["value"] = []byte("2")
	}), Settle())
	return s
}

// rememberingScenario creates a disk, and remembers that in the memory of the process, which is wrong, or by its name.
func rememberingScenario(wrong bool) Scenario {
	s := ownedScenario(nil)
	s.New = func(e Env) reconcile.Reconciler {
		created := false
		return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			if !wrong {
				return reconcile.Result{}, e.Cloud.Put(ctx, "disk-a", "a")
			}
			if created {
				return reconcile.Result{}, nil
			}
			_, err := e.Cloud.CreateNamed(ctx, "disk-", "a")
			created = err == nil
			return reconcile.Result{}, err
		})
	}
	return s
}

// impatientScenario creates a config map within 30 s, or not at all. If it is wrong, it does not try again.
func impatientScenario(wrong bool) Scenario {
	s := ownedScenario(func(ctx context.Context, e Env, secret *corev1.Secret) error {
		began := time.Now()
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.ConfigMap{})
		switch {
		case !apierrs.IsNotFound(err):
			return err
		case time.Since(began) < 30*time.Second:
			return e.Client.Create(ctx, configMapOf(secret, true))
		case wrong:
			return nil
		}
		return context.DeadlineExceeded
	})
	s.With = []Fault{FaultPause}
	return s
}

// optionalScenario creates a gadget for a secret if the kind is served. If it is wrong, it does not try again later.
func optionalScenario(t *testing.T, wrong bool) Scenario {
	s := gadgetScenario(t, nil)
	s.For, s.Owns, s.With = &corev1.Secret{}, []client.Object{&gadget{}}, []Fault{FaultKindRemoved}
	s.Steps = Steps(Apply(newSecret("a")), Settle())
	s.New = func(e Env) reconcile.Reconciler {
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			secret := &corev1.Secret{}
			if err := e.Client.Get(ctx, req.NamespacedName, secret); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			child := &gadget{ObjectMeta: metav1.ObjectMeta{
				Namespace: req.Namespace, Name: req.Name, OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(secret, corev1.SchemeGroupVersion.WithKind("Secret")),
				},
			}}
			err := e.Client.Get(ctx, req.NamespacedName, &gadget{})
			if apierrs.IsNotFound(err) {
				err = e.Client.Create(ctx, child)
			}
			if !apierrs.IsNotFound(err) && !meta.IsNoMatchError(err) {
				return reconcile.Result{}, err
			}
			if wrong {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		})
	}
	return s
}

// judgingScenario records whether a deployment is ready. If it is wrong, the first answer is final.
func judgingScenario(wrong bool) Scenario {
	s := ownedScenario(func(ctx context.Context, e Env, secret *corev1.Secret) error {
		deployment := &appsv1.Deployment{}
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(secret), deployment)
		if apierrs.IsNotFound(err) {
			return client.IgnoreAlreadyExists(e.Client.Create(ctx, deploymentOf(secret)))
		}
		state := "not ready"
		if deployment.Status.ReadyReplicas > 0 {
			state = "ready"
		}
		before := secret.Annotations["state"]
		if err != nil || before == state || wrong && before != "" {
			return err
		}
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "state", state)
		return e.Client.Update(ctx, secret)
	})
	s.Owns = []client.Object{&appsv1.Deployment{}}
	s.World = []Actor{Deployments(BecomeReady)}
	return s
}

// waitingScenario waits in memory for the event of a deployment that is ready. If it is wrong, it starts to wait after
// the creation and another request.
func waitingScenario(wrong bool) Scenario {
	var waits bool
	s := ownedScenario(nil)
	s.New = func(e Env) reconcile.Reconciler {
		waits = false
		created := func(ctx context.Context, secret *corev1.Secret) error {
			err := client.IgnoreAlreadyExists(e.Client.Create(ctx, deploymentOf(secret)))
			if err != nil || secret.Annotations["state"] != "" {
				return err
			}
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "state", "created")
			return e.Client.Update(ctx, secret)
		}
		return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			secret, deployment := &corev1.Secret{}, &appsv1.Deployment{}
			if err := e.Client.Get(ctx, req.NamespacedName, secret); err != nil || waits {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			switch err := e.Client.Get(ctx, req.NamespacedName, deployment); {
			case apierrs.IsNotFound(err) && wrong:
				err = created(ctx, secret)
				waits = err == nil
				return reconcile.Result{}, err
			case apierrs.IsNotFound(err):
				waits = true
				if err = created(ctx, secret); err != nil {
					waits = false
				}
				return reconcile.Result{}, err
			case err != nil || deployment.Status.ReadyReplicas == 0 || secret.Annotations["state"] == "ready":
				return reconcile.Result{}, err
			}
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "state", "ready")
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		})
	}
	s.Owns = nil
	s.Watches = []Watch{{Object: &appsv1.Deployment{}, Requests: func(
		_ context.Context, obj client.Object,
	) []reconcile.Request {
		if obj.(*appsv1.Deployment).Status.ReadyReplicas > 0 {
			waits = false
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}}}
	s.World = []Actor{Deployments(BecomeReady)}
	return s
}

// repeatingScenario annotates secrets after a change of a config map. If it is wrong, each update event is a change.
func repeatingScenario(wrong bool) Scenario {
	s := ownedScenario(nil)
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"}}
	other := theme.DeepCopy()
	other.Name = "other"
	s.New, s.Owns = nil, nil
	s.Given = []client.Object{newSecret("a"), theme}
	s.Steps = Steps(Settle(), Apply(other), Settle())
	s.Setup = func(mgr ctrl.Manager) error {
		changed := atomic.Bool{}
		events := handler.Funcs{UpdateFunc: func(
			_ context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request],
		) {
			if wrong {
				changed.Store(true)
				return
			}
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(newSecret("a"))})
		}}
		return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Watches(&corev1.ConfigMap{}, events).
			Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				secret := &corev1.Secret{}
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, secret); err != nil || !changed.Load() {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "changed", "true")
				return reconcile.Result{}, mgr.GetClient().Update(ctx, secret)
			}))
	}
	return s
}
