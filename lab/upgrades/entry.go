// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// Entry is a bug of an upgrade or a rollback, with the same versions without the bug.
type Entry struct {
	// Name is unique.
	Name string
	// About describes the bug in one sentence.
	About string
	// Oracle finds the bug.
	Oracle converge.Oracle
	// Rollback is set if only a rollback shows the bug.
	Rollback bool

	// old, buggy and correct are versions of the controller. fixedOld is the old version that goes with correct if the bug
	// is in the old one.
	old, buggy, correct version
	fixedOld            *version
	// noRollback is the reason why a rollback is not supported.
	noRollback string
	// without is the reason why other clients must not delete children, or "".
	without string
	// masks are fields that may keep what the old version has written.
	masks []converge.Mask
}

// All returns all entries.
func All() []Entry { return slices.Concat(names, fields, metadata, states, interruptions, rollbacks) }

// Scenarios returns the scenarios of the old and the new version, with or without the bug.
func (e *Entry) Scenarios(buggy bool) (old, current converge.Scenario) {
	if buggy {
		return e.scenario(e.old), e.scenario(e.buggy)
	}
	return e.scenario(*cmp.Or(e.fixedOld, &e.old)), e.scenario(e.correct)
}

func (e *Entry) scenario(v version) converge.Scenario {
	app := &App{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: AppSpec{Image: "example.com/app:v1", Size: 2},
	}
	s := converge.Scenario{
		Scheme: scheme,
		New: func(env converge.Env) reconcile.Reconciler {
			return &controller{Client: env.Client, cloud: env.Cloud, version: v}
		},
		For: &App{},
		Owns: []client.Object{
			&appsv1.Deployment{}, &batchv1.Job{}, &corev1.ConfigMap{}, &corev1.Pod{}, &corev1.Service{},
		},
		Steps:      converge.Lifecycle(app, func(a *App) { a.Spec.Size = 1 }),
		Masks:      e.masks,
		NoRollback: e.noRollback,
	}
	if e.without != "" {
		s.Without = map[converge.Fault]string{
			converge.FaultChildDeleted: e.without, converge.FaultDeleted: e.without, converge.FaultRecreated: e.without,
			converge.FaultTaken: e.without,
		}
	}
	return s
}
