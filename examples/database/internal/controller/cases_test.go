// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/examples/database"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

// The objects of the cases. Cases derive variants with rtesting.With.
var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	// shop has the defaults of its CustomResourceDefinition.
	shop = rtesting.With(newDatabase(), func(db *databasev1.Database) {
		db.Namespace, db.UID, db.Generation, db.Spec.Version = "cases", "uid-of-shop", 1, 18
	})
	leavingShop = rtesting.With(shop, withFinalizer, withBackup, func(db *databasev1.Database) {
		db.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Minute)))
	})

	configuration = applied(owned(manifest.Configuration(shop)))
	credentials   = owned(manifest.Credentials(shop, "first"))
	podsService   = owned(manifest.PodsService(shop))
	service       = owned(manifest.Service(shop))
	servers       = owned(manifest.StatefulSet(shop, manifest.Hash(configuration.Data, "")))
	// runningServers are the servers after the rollout.
	runningServers = rtesting.With(servers, func(set *appsv1.StatefulSet) {
		set.Generation = 1
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, ReadyReplicas: 1,
		}
	})
)

func newPassword() string { return "first" }

func withFinalizer(db *databasev1.Database) { db.Finalizers = []string{databasev1.Finalizer} }

// condition sets a condition as a reconciler does, at the time of the cases.
func condition(name string, status metav1.ConditionStatus, reason, message string) func(*databasev1.Database) {
	return func(db *databasev1.Database) {
		conditions := db.Status.ConditionManager(context.Background())
		switch status {
		case metav1.ConditionTrue:
			conditions.MarkTrue(name, reason, "%s", message)
		case metav1.ConditionFalse:
			conditions.MarkFalse(name, reason, "%s", message)
		default:
			conditions.MarkUnknown(name, reason, "%s", message)
		}
	}
}

// owned makes the shop the owner of a child.
func owned[T client.Object](child T) T {
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: databasev1.GroupVersion.String(), Kind: "Database", Name: shop.Name, UID: shop.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}})
	return child
}

// fieldOwner is the field owner of the controller.
var fieldOwner = reconcilers.DefaultFieldOwner(databasev1.GroupVersion.WithKind("Database").GroupKind())

// applied makes the controller own the fields of a child, as after an apply.
func applied[T client.Object](child T) T {
	return rtesting.AppliedBy(fieldOwner, child, cases)
}

// applies are expected applies of children.
func applies(children ...client.Object) (refs []rtesting.ApplyRef) {
	for _, child := range children {
		refs = append(refs, rtesting.NewApplyRefFromObject(child, cases))
	}
	return refs
}

func event(kind, reason, message string) rtesting.Event {
	return rtesting.NewEvent(shop, cases, kind, reason, "%s", message)
}

func created(kind, name string) rtesting.Event {
	return event(corev1.EventTypeNormal, "Created", "Created "+kind+` "`+name+`"`)
}

func updated(kind, name string) rtesting.Event {
	return event(corev1.EventTypeNormal, "Updated", "Updated "+kind+` "`+name+`"`)
}

func deleted(kind, name string) rtesting.Event {
	return event(corev1.EventTypeNormal, "Deleted", "Deleted "+kind+` "`+name+`"`)
}

// forbid rejects applies of objects of a kind.
func forbid(kind, resource, name string) rtesting.ReactionFunc {
	refusal := apierrs.NewForbidden(schema.GroupResource{Resource: resource}, name, errors.New("not allowed"))
	return rtesting.InduceFailure("apply", kind, rtesting.InduceFailureOpts{Error: refusal})
}

// exists makes the API server have an object that is not in the cache.
func exists(kind, resource, name string) rtesting.ReactionFunc {
	refusal := apierrs.NewAlreadyExists(schema.GroupResource{Resource: resource}, name)
	return rtesting.InduceFailure("create", kind, rtesting.InduceFailureOpts{Error: refusal})
}

func notCreated(kind, name, why string) rtesting.Event {
	return event(corev1.EventTypeWarning, "CreationFailed", "Failed to create "+kind+` "`+name+`": `+why)
}

// halted asserts that a step has halted the following steps.
func halted(t *testing.T, _ reconcilers.Result, err error) {
	t.Helper()
	if !errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
		t.Errorf("error = %v, want one that halts", err)
	}
}

// cases is the scheme of the cases.
var cases = func() *runtime.Scheme {
	scheme, err := buildScheme()
	if err != nil {
		panic(err)
	}
	return scheme
}()

type (
	subCases     = rtesting.SubReconcilerTests[*databasev1.Database]
	subCase      = rtesting.SubReconcilerTestCase[*databasev1.Database]
	subFactory   = rtesting.SubReconcilerFactory[*databasev1.Database]
	subReconcile = reconcilers.SubReconciler[*databasev1.Database]
)

// runSteps runs the cases of one step on both APIs, see [onBoth].
func runSteps(t *testing.T, tests subCases, step func() subReconcile) {
	t.Helper()
	onBoth(t, func(t *testing.T, options ...rtesting.RunOption) {
		factory := subFactory(func(*testing.T, *subCase, reconcilers.Config) subReconcile { return step() })
		tests.Run(t, cases, factory, options...)
	})
}

// inMemory runs cases that set the status of a StatefulSet: in a cluster another controller would change it.
func inMemory(t *testing.T, tests subCases, step func() subReconcile) {
	t.Helper()
	factory := subFactory(func(*testing.T, *subCase, reconcilers.Config) subReconcile { return step() })
	tests.Run(t, cases, factory, rtesting.Realistic())
}

// onBoth runs cases in memory, and then the same cases on a real API.
func onBoth(t *testing.T, run func(t *testing.T, options ...rtesting.RunOption)) {
	t.Helper()
	t.Run("in memory", func(t *testing.T) { run(t) })
	t.Run("on a cluster", func(t *testing.T) {
		sb := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{database.CRDs()}})
		run(t, rtesting.OnCluster(sb.RESTConfig()))
	})
}
