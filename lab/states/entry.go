// SPDX-License-Identifier: Apache-2.0

package states

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// Entry is a bug, with the same reconciler without the bug.
type Entry struct {
	// Name is unique.
	Name string
	// Category is one of Acto's categories: undesired, error, outage or ignored. Or it is half.
	Category string
	// About describes the bug in one sentence.
	About string
	// Oracle finds the bug. It is empty for entries of category half, which are advice.
	Oracle converge.Oracle

	// spec is the first spec. Its schema has only the fields with these names.
	spec   AppSpec
	fields []string
	// sync brings the children of an app up to date.
	sync func(buggy bool) func(*session) error
}

// All returns all entries.
func All() []Entry {
	return slices.Concat(removals, updates, errorStates, outages, rollbacks, metadata)
}

// Scenario returns the scenario of an entry, with or without the bug.
func (e *Entry) Scenario(buggy bool) converge.Scenario {
	app := &App{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: e.spec}
	return converge.Scenario{
		Scheme: scheme,
		CRDs:   []client.Object{definition(e.fields)},
		New: func(env converge.Env) reconcile.Reconciler {
			return &controller{Client: env.Client, cloud: env.Cloud, sync: e.sync(buggy)}
		},
		For: &App{},
		Owns: []client.Object{
			&appsv1.Deployment{}, &appsv1.StatefulSet{}, &batchv1.Job{}, &corev1.ConfigMap{},
			&corev1.PersistentVolumeClaim{}, &corev1.Service{},
		},
		Steps: converge.Lifecycle(app),
	}
}
