// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/backup"
	"trueup.dev/examples/database/internal/controller"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
)

const poll = 10 * time.Second

func TestCertificateReconciler(t *testing.T) {
	secured := rtesting.With(shop, withTLS)
	certificate := rtesting.With(newCertificate("first"), func(secret *corev1.Secret) { secret.Namespace = "cases" })
	tracked := []rtesting.TrackRequest{rtesting.NewTrackRequest(certificate, shop, cases)}
	hash := func(value any) map[stash.Key]any { return map[stash.Key]any{controller.CertificateStash.Key(): value} }
	mark := func(status metav1.ConditionStatus, reason, message string) func(*databasev1.Database) {
		return condition(databasev1.ConditionCertificateReady, status, reason, message)
	}
	runSteps(t, subCases{
		"spec.tls is not set": {
			Resource:            shop,
			ExpectResource:      rtesting.With(shop, mark(metav1.ConditionTrue, "NotNeeded", "")),
			ExpectStashedValues: hash(nil),
		},
		"it is read and tracked": {
			Resource:            secured,
			GivenObjects:        []client.Object{certificate},
			ExpectTracks:        tracked,
			ExpectResource:      rtesting.With(secured, mark(metav1.ConditionTrue, "Found", "")),
			ExpectStashedValues: hash(manifest.Hash([]byte("first"))),
		},
		"it does not exist, and is tracked": {
			Resource:     secured,
			ExpectTracks: tracked,
			ExpectResource: rtesting.With(secured,
				mark(metav1.ConditionFalse, "SecretNotFound", `Secret "shop-tls" does not exist`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"it has no certificate": {
			Resource:     secured,
			GivenObjects: []client.Object{rtesting.With(certificate, func(s *corev1.Secret) { s.Data["tls.crt"] = nil })},
			ExpectTracks: tracked,
			ExpectResource: rtesting.With(secured, mark(metav1.ConditionFalse, "SecretIncomplete",
				`Secret "shop-tls" must have the keys tls.crt and tls.key`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"it cannot be read": {
			Resource:     secured,
			WithReactors: []rtesting.ReactionFunc{rtesting.InduceFailure("get", "Secret")},
			ExpectTracks: tracked,
			ShouldErr:    true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if errors.Is(err, reconcilers.ErrHaltSubReconcilers) {
					t.Errorf("error = %v, want one that does not halt", err)
				}
			},
		},
	}, controller.CertificateReconciler)
}

func TestStatefulSetReconciler(t *testing.T) {
	status := func(change func(*appsv1.StatefulSetStatus)) []client.Object {
		return []client.Object{rtesting.With(runningServers, func(set *appsv1.StatefulSet) { change(&set.Status) })}
	}
	is := func(status metav1.ConditionStatus, reason, message string, ready int32) *databasev1.Database {
		return rtesting.With(shop, condition(databasev1.ConditionStatefulSetReady, status, reason, message),
			func(db *databasev1.Database) { db.Status.ReadyReplicas = ready })
	}
	rollingOut := func(ready int32) *databasev1.Database {
		return is(metav1.ConditionUnknown, "RollingOut", "waiting for servers with the current specification", ready)
	}
	restarted := func(set *appsv1.StatefulSet) {
		set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "2026-01-01T00:00:00Z"
	}
	stored := rtesting.With(servers, func(set *appsv1.StatefulSet) { set.Generation = 1 })
	grown := rtesting.With(shop, func(db *databasev1.Database) { db.Spec.Storage = resource.MustParse("2Gi") })
	inMemory(t, subCases{
		"it is created": {
			Resource:       shop,
			ExpectCreates:  []client.Object{servers},
			ExpectEvents:   []rtesting.Event{created("StatefulSet", "shop")},
			ExpectResource: rollingOut(0),
		},
		"it restarts when the certificate changes": {
			Resource:           shop,
			GivenObjects:       []client.Object{stored},
			GivenStashedValues: map[stash.Key]any{controller.CertificateStash.Key(): "second"},
			ExpectUpdates: []client.Object{rtesting.With(stored, func(set *appsv1.StatefulSet) {
				set.Spec.Template.Annotations[databasev1.AnnotationConfigHash] = manifest.Hash(configuration.Data, "second")
			})},
			ExpectEvents:   []rtesting.Event{updated("StatefulSet", "shop")},
			ExpectResource: rollingOut(0),
		},
		"it is rolled out": {
			Resource:       shop,
			GivenObjects:   []client.Object{runningServers},
			ExpectResource: is(metav1.ConditionTrue, "RolledOut", "", 1),
		},
		"its status is of an older generation": {
			Resource:       shop,
			GivenObjects:   status(func(s *appsv1.StatefulSetStatus) { s.ObservedGeneration = 0 }),
			ExpectResource: rollingOut(1),
		},
		"a pod runs an older revision": {
			Resource:       shop,
			GivenObjects:   status(func(s *appsv1.StatefulSetStatus) { s.UpdatedReplicas = 0 }),
			ExpectResource: rollingOut(1),
		},
		"there is one pod too many": {
			Resource:       shop,
			GivenObjects:   status(func(s *appsv1.StatefulSetStatus) { s.Replicas = 2 }),
			ExpectResource: rollingOut(1),
		},
		"a pod is not available": {
			Resource:       shop,
			GivenObjects:   status(func(s *appsv1.StatefulSetStatus) { s.AvailableReplicas, s.ReadyReplicas = 0, 0 }),
			ExpectResource: rollingOut(0),
		},
		"volumes keep their size": {
			Resource:     grown,
			GivenObjects: []client.Object{runningServers},
			ExpectResource: rtesting.With(grown, condition(databasev1.ConditionStatefulSetReady, metav1.ConditionFalse,
				"StorageChangeRefused", "the volumes have 1Gi, and the volumes of a StatefulSet cannot change to 2Gi"),
				func(db *databasev1.Database) { db.Status.ReadyReplicas = 1 }),
		},
		"its replicas are repaired, and the restart annotation stays": {
			Resource: shop,
			GivenObjects: []client.Object{rtesting.With(stored, restarted, func(set *appsv1.StatefulSet) {
				set.Spec.Replicas = new(int32(5))
			})},
			ExpectUpdates:  []client.Object{rtesting.With(stored, restarted)},
			ExpectEvents:   []rtesting.Event{updated("StatefulSet", "shop")},
			ExpectResource: rollingOut(0),
		},
	}, controller.StatefulSetReconciler)
}

// answer is a backup system that always returns the same result for a backup, and has no accounts.
type answer struct {
	backup.System
	complete bool
	err      error
}

func (a answer) Take(_ context.Context, r backup.Request) (bool, error) {
	want := backup.Request{ID: "uid-of-shop", Source: "shop.cases.svc:5432", Target: "backups/cases/shop"}
	if r != want {
		return false, errors.New("unexpected request")
	}
	return a.complete, a.err
}

func TestFinalBackupReconciler(t *testing.T) {
	exist := []client.Object{runningServers}
	failing := answer{err: errors.New("the bucket is full")}
	asks := func(a answer) map[string]any { return map[string]any{"answer": a} }
	tests := subCases{
		"nothing is being deleted": {Resource: rtesting.With(shop, withBackup), Metadata: asks(failing)},
		"it is complete":           {Resource: leavingShop, APIGivenObjects: exist, Metadata: asks(answer{complete: true})},
		"it is running": {
			Resource: leavingShop, APIGivenObjects: exist, Metadata: asks(answer{}),
			ExpectResource: rtesting.With(leavingShop,
				condition(databasev1.ConditionBackupReady, metav1.ConditionUnknown, "FinalBackupRunning", "")),
			ShouldErr: true,
			Verify: func(t *testing.T, result reconcilers.Result, err error) {
				halted(t, result, err)
				if result.RequeueAfter != poll {
					t.Errorf("requeue after %s, want %s", result.RequeueAfter, poll)
				}
			},
		},
		"it fails": {
			Resource: leavingShop, APIGivenObjects: exist, Metadata: asks(failing),
			ExpectResource: rtesting.With(leavingShop,
				condition(databasev1.ConditionBackupReady, metav1.ConditionFalse, "FinalBackupFailed", "the bucket is full")),
			ShouldErr: true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if !errors.Is(err, failing.err) {
					t.Errorf("error = %v, want %v", err, failing.err)
				}
			},
		},
		"without servers": {Resource: leavingShop, Metadata: asks(failing)},
		"without backups": {
			Resource:        rtesting.With(leavingShop, func(db *databasev1.Database) { db.Spec.Backup = nil }),
			APIGivenObjects: exist, Metadata: asks(failing),
		},
		"the final backup is skipped": {
			Resource: rtesting.With(leavingShop, func(db *databasev1.Database) {
				db.Annotations = map[string]string{databasev1.AnnotationSkipFinalBackup: "true"}
			}),
			APIGivenObjects: exist, Metadata: asks(failing),
		},
	}
	onBoth(t, func(t *testing.T, options ...rtesting.RunOption) {
		tests.Run(t, cases, func(_ *testing.T, tc *subCase, _ reconcilers.Config) subReconcile {
			return controller.FinalBackupReconciler(tc.Metadata["answer"].(answer), poll)
		}, options...)
	})
}

func TestAccountReconciler(t *testing.T) {
	const id, target = "uid-of-shop", "backups/cases/shop"
	kept := rtesting.With(shop, withBackup, withAccount)
	current := condition(databasev1.ConditionBackupAccountReady, metav1.ConditionTrue, "Ready", "")
	refused := errors.New("the bucket is full")
	type given struct {
		target string // of the existing account
		err    error
		want   string // the target afterwards
	}
	is := func(g given) map[string]any { return map[string]any{"given": g} }
	normal := func(reason, message string) rtesting.Event { return event(corev1.EventTypeNormal, reason, message) }
	patched := normal("FinalizerPatched", `Patched finalizer "database.trueup.dev/backup-account"`)
	patch := func(finalizers string) []rtesting.PatchRef {
		return []rtesting.PatchRef{{
			Group: "database.trueup.dev", Kind: "Database", Namespace: "cases", Name: "shop", PatchType: types.MergePatchType,
			Patch: []byte(`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"999"}}`),
		}}
	}
	tests := subCases{
		"without backups": {Resource: shop, Metadata: is(given{}), ExpectResource: rtesting.With(shop, current)},
		"it is created": {
			Resource:      rtesting.With(shop, withBackup),
			Metadata:      is(given{want: target}),
			ExpectPatches: patch(`["database.trueup.dev/backup-account"]`),
			ExpectEvents:  []rtesting.Event{patched, normal("ExternalCreated", "Created BackupAccount "+id)},
			ExpectResource: rtesting.With(kept, current, func(db *databasev1.Database) {
				db.ResourceVersion = "1000"
			}),
		},
		"it is in sync": {
			Resource: kept, Metadata: is(given{target: target, want: target}), ExpectResource: rtesting.With(kept, current),
		},
		"its target changes": {
			Resource:       kept,
			Metadata:       is(given{target: "elsewhere", want: target}),
			ExpectEvents:   []rtesting.Event{normal("ExternalUpdated", "Updated BackupAccount "+id)},
			ExpectResource: rtesting.With(kept, current),
		},
		"it is refused": {
			Resource: kept,
			Metadata: is(given{target: "elsewhere", err: refused, want: "elsewhere"}),
			Now:      now,
			ExpectResource: rtesting.With(kept, condition(databasev1.ConditionBackupAccountReady, metav1.ConditionUnknown,
				"WaitingForStep", "step Account: has not finished, since 2026-01-02T03:04:05Z: "+
					"update BackupAccount uid-of-shop: the bucket is full")),
			ShouldErr: true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if !errors.Is(err, refused) {
					t.Errorf("error = %v, want %v", err, refused)
				}
			},
		},
		"it is deleted with the backups": {
			Resource:      rtesting.With(shop, withAccount),
			Metadata:      is(given{target: target}),
			ExpectPatches: patch(`null`),
			ExpectEvents:  []rtesting.Event{normal("ExternalDeleted", "Deleted BackupAccount "+id), patched},
			ExpectResource: rtesting.With(shop, current, func(db *databasev1.Database) {
				db.ResourceVersion = "1000"
			}),
		},
	}
	tests.Run(t, cases, func(t *testing.T, tc *subCase, _ reconcilers.Config) subReconcile {
		g, backups := tc.Metadata["given"].(given), &backup.Fake{}
		if g.target != "" {
			if err := backups.SetAccount(t.Context(), id, g.target); err != nil {
				t.Fatal(err)
			}
		}
		backups.FailWith(g.err)
		t.Cleanup(func() {
			if got, _, err := backups.Account(t.Context(), id); got != g.want || err != nil {
				t.Errorf("the account has the target %q, want %q, error %v", got, g.want, err)
			}
		})
		return controller.AccountReconciler(backups)
	})
}

func withAccount(db *databasev1.Database) {
	db.Finalizers = append(db.Finalizers, databasev1.AccountFinalizer)
}

// The steps have their own cases. These cases are about the whole controller.
func TestDatabaseReconciler(t *testing.T) {
	request := reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(shop)}
	statusKinds := []client.Object{&databasev1.Database{}, &appsv1.StatefulSet{}}
	patch := func(finalizers string) []rtesting.PatchRef {
		return []rtesting.PatchRef{{
			Group: "database.trueup.dev", Kind: "Database", Namespace: "cases", Name: "shop", PatchType: types.MergePatchType,
			Patch: []byte(`{"metadata":{"finalizers":` + finalizers + `,"resourceVersion":"999"}}`),
		}}
	}
	patched := event(corev1.EventTypeNormal, "FinalizerPatched", `Patched finalizer "database.trueup.dev/final-backup"`)
	statusUpdated := event(corev1.EventTypeNormal, "StatusUpdated", "Updated status")
	started := rtesting.With(shop, withFinalizer,
		func(db *databasev1.Database) { db.Status.InitializeConditions(t.Context()) },
		condition(databasev1.ConditionCertificateReady, metav1.ConditionTrue, "NotNeeded", ""),
		condition(databasev1.ConditionConfigurationReady, metav1.ConditionTrue, "Current", ""),
		condition(databasev1.ConditionCredentialsReady, metav1.ConditionTrue, "Current", ""),
		condition(databasev1.ConditionServiceReady, metav1.ConditionTrue, "Current", ""),
		condition(databasev1.ConditionStatefulSetReady, metav1.ConditionUnknown, "RollingOut",
			"waiting for servers with the current specification"),
		condition(databasev1.ConditionDisruptionBudgetReady, metav1.ConditionTrue, "NotNeeded", ""),
		condition(databasev1.ConditionBackupReady, metav1.ConditionTrue, "NotNeeded", ""),
		condition(databasev1.ConditionBackupAccountReady, metav1.ConditionTrue, "Ready", ""),
		func(db *databasev1.Database) {
			db.Status.ObservedGeneration, db.Status.SecretName, db.Status.Endpoint = 1, "shop-credentials", "shop.cases.svc:5432"
		})
	ready := rtesting.With(started, condition(databasev1.ConditionStatefulSetReady, metav1.ConditionTrue, "RolledOut", ""),
		func(db *databasev1.Database) { db.Status.ReadyReplicas = 1 })
	children := []client.Object{configuration, credentials, podsService, service, runningServers}

	tests := rtesting.ReconcilerTests{
		"a Database that does not exist": {Request: request},
		"the first reconcile creates everything": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects:           []client.Object{shop},
			ExpectPatches:          patch(`["database.trueup.dev/final-backup"]`),
			ExpectApplies:          applies(configuration),
			ExpectCreates:          []client.Object{credentials, podsService, service, servers},
			ExpectStatusUpdates:    []client.Object{started},
			ExpectEvents: []rtesting.Event{
				patched, created("ConfigMap", "shop-config"), created("Secret", "shop-credentials"),
				created("Service", "shop-pods"), created("Service", "shop"), created("StatefulSet", "shop"), statusUpdated,
			},
		},
		"a ready Database is not changed": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects:           append([]client.Object{ready}, children...),
		},
		"while the final backup fails, nothing is deleted": {
			Request:                request,
			StatusSubResourceTypes: statusKinds,
			GivenObjects:           append([]client.Object{rtesting.With(ready, leaving)}, children...),
			APIGivenObjects:        []client.Object{runningServers},
			ExpectStatusUpdates: []client.Object{rtesting.With(ready, leaving,
				condition(databasev1.ConditionBackupReady, metav1.ConditionFalse, "FinalBackupFailed", "the bucket is full"))},
			ExpectEvents: []rtesting.Event{statusUpdated},
			ShouldErr:    true,
		},
		"its watches": {
			Request: request,
			ExpectWiring: &rtesting.Wiring{
				Controller: "Database",
				For:        []rtesting.Watch{{Object: &databasev1.Database{}}},
				Owns: []rtesting.Watch{
					{Object: &corev1.ConfigMap{}},
					{Object: &corev1.Secret{}},
					{Object: &corev1.Service{}},
					{Object: &appsv1.StatefulSet{}},
					{Object: &policyv1.PodDisruptionBudget{}},
					{Object: &batchv1.CronJob{}},
				},
				Tracks: []rtesting.Watch{
					{Object: &corev1.Secret{}},
					{Object: &corev1.ConfigMap{}},
					{Object: &corev1.Service{}},
					{Object: &appsv1.StatefulSet{}},
					{Object: &policyv1.PodDisruptionBudget{}},
					{Object: &batchv1.CronJob{}},
				},
			},
		},
	}
	for name, tc := range tests {
		tc.Now = now
		tests[name] = tc
	}
	tests.Run(t, cases, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return controller.NewDatabaseReconciler(c, answer{err: errors.New("the bucket is full")}, poll, newPassword)
	}, rtesting.Realistic(), rtesting.RecordPermissions(&usedByCases))
}

func leaving(db *databasev1.Database) {
	withBackup(db)
	db.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Minute)))
}
