// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/inject"
)

// TestAnnotationsArePassedOn copies the annotations of a Secret into a pod template, also the one of the other client,
// or a hash of them. A copy without the changes of the users is still wrong.
func TestAnnotationsArePassedOn(t *testing.T) {
	hashed := func(annotations map[string]string) map[string]string {
		hash := fnv.New32a()
		_, _ = fmt.Fprint(hash, annotations)
		return map[string]string{"example.com/hash": fmt.Sprint(hash.Sum32())}
	}
	for name, c := range map[string]struct {
		forget bool
		pass   func(map[string]string) map[string]string
	}{
		"all": {}, "none after a conflict": {forget: true},
		"a hash": {pass: hashed}, "a hash of none after a conflict": {forget: true, pass: hashed},
	} {
		t.Run(name, func(t *testing.T) {
			forget := c.forget
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				if !secret.DeletionTimestamp.IsZero() {
					controllerutil.RemoveFinalizer(secret, "example.com/f")
					return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
				}
				annotations := maps.Clone(secret.Annotations)
				if controllerutil.AddFinalizer(secret, "example.com/f") {
					if err := e.Client.Update(ctx, secret); !forget || !apierrs.IsConflict(err) {
						return reconcile.Result{}, err
					}
					annotations = nil
				}
				template := &corev1.PodTemplate{ObjectMeta: *configMapOf(secret, true).ObjectMeta.DeepCopy()}
				if template.Template.Annotations = annotations; c.pass != nil {
					template.Template.Annotations = c.pass(annotations)
				}
				template.Template.Labels = map[string]string{"app": secret.Name}
				template.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
				return reconcile.Result{}, client.IgnoreAlreadyExists(e.Client.Create(ctx, template))
			})
			secret := newSecret("a")
			secret.Annotations = map[string]string{"example.com/a": "b"}
			s.Owns = []client.Object{&corev1.PodTemplate{}}
			s.Steps = Lifecycle(secret)
			switch f := foundIn(t, s); {
			case forget && (f == nil || f.Violation.Oracle != OracleEndState):
				t.Errorf("got %v, want that an annotation is missing", f)
			case !forget && f != nil:
				t.Error(f)
			}
		})
	}
}

// TestOtherClient_withdraws checks that a fault is neither counted nor shown, and does not end the process, if the API
// server rejects the write of the other client: here because the namespace does not exist.
func TestOtherClient_withdraws(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		if !secret.DeletionTimestamp.IsZero() {
			return reconcile.Result{}, nil
		}
		elsewhere := configMapOf(secret, false)
		elsewhere.Namespace = "absent"
		return reconcile.Result{}, client.IgnoreNotFound(e.Client.Create(ctx, elsewhere))
	})
	s.With = []Fault{FaultTakenUnnoticed}
	p, reference := referred(t, s)
	for _, fault := range []Fault{FaultExists, FaultTaken, FaultTakenUnnoticed} {
		tried := 0
		for _, m := range reference.Points {
			if m.Act != "create" || !m.Faults.Has(fault) {
				continue
			}
			tried++
			log := &explain.Timeline{}
			o := p.execute(t, inject.Schedule{{Point: m.Point, Fault: fault}}, p.usual(), log)
			if o.Injected != 0 || len(log.Hits) > 0 {
				t.Errorf("%s at %s: injected %d times, shown at %v, want neither", fault, m.Point, o.Injected, log.Hits)
			}
			if log.Process != 1 {
				t.Errorf("%s at %s: the process was restarted", fault, m.Point)
			}
		}
		if tried == 0 {
			t.Errorf("no point for %s", fault)
		}
	}
}
