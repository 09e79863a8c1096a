// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/controller"
	"trueup.dev/examples/database/internal/manifest"
	rtesting "trueup.dev/testing"
)

func TestConfigurationReconciler(t *testing.T) {
	current := rtesting.With(shop, condition(databasev1.ConditionConfigurationReady, metav1.ConditionTrue, "Current", ""))
	labeled := func(cm *corev1.ConfigMap) { cm.Labels["team"] = "a" }
	runSteps(t, subCases{
		"it is created": {
			Resource:       shop,
			ExpectApplies:  applies(configuration),
			ExpectEvents:   []rtesting.Event{created("ConfigMap", "shop-config")},
			ExpectResource: current,
		},
		"it is in sync": {
			Resource:       shop,
			GivenObjects:   []client.Object{configuration},
			ExpectResource: current,
		},
		"it is repaired, and labels of other clients are left to them": {
			Resource: shop,
			GivenObjects: []client.Object{rtesting.With(configuration, labeled, func(cm *corev1.ConfigMap) {
				cm.Data["postgresql.conf"] = "fsync = off"
			})},
			ExpectApplies:  applies(configuration),
			ExpectEvents:   []rtesting.Event{updated("ConfigMap", "shop-config")},
			ExpectResource: current,
		},
		"it is rejected, and halts": {
			Resource:      shop,
			WithReactors:  []rtesting.ReactionFunc{forbid("ConfigMap", "configmaps", "shop-config")},
			ExpectApplies: applies(configuration),
			ExpectEvents: []rtesting.Event{
				notCreated("ConfigMap", "shop-config", `configmaps "shop-config" is forbidden: not allowed`),
			},
			ExpectResource: rtesting.With(shop, condition(databasev1.ConditionConfigurationReady, metav1.ConditionFalse,
				"Forbidden", `configmaps "shop-config" is forbidden: not allowed`)),
			ShouldErr: true,
			Verify:    halted,
		},
	}, controller.ConfigurationReconciler)
}

func TestCredentialsReconciler(t *testing.T) {
	current := rtesting.With(shop, condition(databasev1.ConditionCredentialsReady, metav1.ConditionTrue, "Current", ""),
		func(db *databasev1.Database) { db.Status.SecretName = "shop-credentials" })
	password := func(password string) func(*corev1.Secret) {
		return func(secret *corev1.Secret) { secret.Data[manifest.PasswordKey] = []byte(password) }
	}
	mutable := func(secret *corev1.Secret) { secret.Immutable = nil }
	foreign := rtesting.With(credentials, func(secret *corev1.Secret) { secret.OwnerReferences = nil })
	runSteps(t, subCases{
		"a password is generated": {
			Resource:       shop,
			ExpectCreates:  []client.Object{credentials},
			ExpectEvents:   []rtesting.Event{created("Secret", "shop-credentials")},
			ExpectResource: current,
		},
		"an existing password is kept": {
			Resource:       shop,
			GivenObjects:   []client.Object{rtesting.With(credentials, password("from before"))},
			ExpectResource: current,
		},
		"an existing Secret becomes immutable": {
			Resource:       shop,
			GivenObjects:   []client.Object{rtesting.With(credentials, password("from before"), mutable)},
			ExpectUpdates:  []client.Object{rtesting.With(credentials, password("from before"))},
			ExpectEvents:   []rtesting.Event{updated("Secret", "shop-credentials")},
			ExpectResource: current,
		},
		"a missing password is not generated again": {
			Resource: shop,
			GivenObjects: []client.Object{rtesting.With(credentials, func(secret *corev1.Secret) {
				delete(secret.Data, manifest.PasswordKey)
			})},
			ExpectResource: rtesting.With(shop, condition(databasev1.ConditionCredentialsReady, metav1.ConditionFalse,
				"PasswordMissing", `Secret "shop-credentials" has no key "password"; delete it to generate a new password`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"the cache has not seen the Secret": {
			Resource:        shop,
			APIGivenObjects: []client.Object{credentials},
			WithReactors:    []rtesting.ReactionFunc{exists("Secret", "secrets", "shop-credentials")},
			ExpectCreates:   []client.Object{credentials},
			ExpectEvents: []rtesting.Event{
				notCreated("Secret", "shop-credentials", `secrets "shop-credentials" already exists`),
			},
			ShouldErr: true, // retried when the cache has it
		},
		"its name is in use": {
			Resource:        shop,
			GivenObjects:    []client.Object{foreign},
			APIGivenObjects: []client.Object{foreign},
			ExpectTracks:    []rtesting.TrackRequest{rtesting.NewTrackRequest(credentials, shop, cases)},
			ExpectCreates:   []client.Object{credentials},
			ExpectEvents: []rtesting.Event{
				notCreated("Secret", "shop-credentials", `secrets "shop-credentials" already exists`),
			},
			ExpectResource: rtesting.With(shop, condition(databasev1.ConditionCredentialsReady, metav1.ConditionFalse,
				"AlreadyExists", `secrets "shop-credentials" already exists`)),
			ShouldErr: true,
			Verify:    halted,
		},
		"the previous one is being deleted": {
			Resource: shop,
			GivenObjects: []client.Object{rtesting.With(credentials, func(secret *corev1.Secret) {
				secret.Finalizers, secret.DeletionTimestamp = []string{"example.com/hold"}, new(metav1.NewTime(now))
			})},
			ExpectResource: rtesting.With(shop, condition(databasev1.ConditionCredentialsReady, metav1.ConditionUnknown,
				"Replacing", `waiting until the previous "shop-credentials" is deleted`)),
			ShouldErr: true,
			Verify:    halted,
		},
	}, func() subReconcile { return controller.CredentialsReconciler(newPassword) })
}

// Neither step changes the Service of the other.
func TestServiceReconcilers(t *testing.T) {
	current := rtesting.With(shop, condition(databasev1.ConditionServiceReady, metav1.ConditionTrue, "Current", ""),
		func(db *databasev1.Database) { db.Status.Endpoint = "shop.cases.svc:5432" })
	for name, tc := range map[string]struct {
		step        func() subReconcile
		ours, other *corev1.Service
	}{
		"for clients": {controller.ServiceReconciler, service, podsService},
		"for pods":    {controller.PodsServiceReconciler, podsService, service},
	} {
		t.Run(name, func(t *testing.T) {
			runSteps(t, subCases{
				"it is created": {
					Resource:       shop,
					GivenObjects:   []client.Object{tc.other},
					ExpectCreates:  []client.Object{tc.ours},
					ExpectEvents:   []rtesting.Event{created("Service", tc.ours.Name)},
					ExpectResource: current,
				},
				"it is in sync": {
					Resource:       shop,
					GivenObjects:   []client.Object{service, podsService},
					ExpectResource: current,
				},
				"it is repaired": {
					Resource: shop,
					GivenObjects: []client.Object{tc.other, rtesting.With(tc.ours, func(s *corev1.Service) {
						s.Spec.Ports[0].Port = 8080
					})},
					ExpectUpdates:  []client.Object{tc.ours},
					ExpectEvents:   []rtesting.Event{updated("Service", tc.ours.Name)},
					ExpectResource: current,
				},
			}, tc.step)
		})
	}
}

func TestDisruptionBudgetReconciler(t *testing.T) {
	marked := func(reason string, replicas int32) *databasev1.Database {
		return rtesting.With(shop, withReplicas(replicas),
			condition(databasev1.ConditionDisruptionBudgetReady, metav1.ConditionTrue, reason, ""))
	}
	budget := applied(owned(manifest.DisruptionBudget(shop)))
	runSteps(t, subCases{
		"none for one server": {Resource: shop, ExpectResource: marked("NotNeeded", 1)},
		"one for two servers": {
			Resource:       rtesting.With(shop, withReplicas(2)),
			ExpectApplies:  applies(budget),
			ExpectEvents:   []rtesting.Event{created("PodDisruptionBudget", "shop")},
			ExpectResource: marked("Current", 2),
		},
		"it is deleted with the second server": {
			Resource:       shop,
			GivenObjects:   []client.Object{budget},
			ExpectDeletes:  []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(budget, cases)},
			ExpectEvents:   []rtesting.Event{deleted("PodDisruptionBudget", "shop")},
			ExpectResource: marked("NotNeeded", 1),
		},
	}, controller.DisruptionBudgetReconciler)
}

func TestScheduleReconciler(t *testing.T) {
	kept := rtesting.With(shop, withBackup)
	current := condition(databasev1.ConditionBackupReady, metav1.ConditionTrue, "Current", "")
	notNeeded := condition(databasev1.ConditionBackupReady, metav1.ConditionTrue, "NotNeeded", "")
	unscheduled := rtesting.With(kept, func(db *databasev1.Database) { db.Spec.Backup.Schedule = "" })
	job := applied(owned(manifest.ScheduledBackup(kept)))
	suspended := func(job *batchv1.CronJob) { job.Spec.Suspend = new(true) }
	runSteps(t, subCases{
		"no backups":  {Resource: shop, ExpectResource: rtesting.With(shop, notNeeded)},
		"no schedule": {Resource: unscheduled, ExpectResource: rtesting.With(unscheduled, notNeeded)},
		"it is created": {
			Resource:       kept,
			ExpectApplies:  applies(job),
			ExpectEvents:   []rtesting.Event{created("CronJob", "shop-backup")},
			ExpectResource: rtesting.With(kept, current),
		},
		"its schedule changes, and whether it is suspended is left to others": {
			Resource: kept,
			GivenObjects: []client.Object{rtesting.With(job, suspended, func(job *batchv1.CronJob) {
				job.Spec.Schedule = "@hourly"
			})},
			ExpectApplies:  applies(job),
			ExpectEvents:   []rtesting.Event{updated("CronJob", "shop-backup")},
			ExpectResource: rtesting.With(kept, current),
		},
		"it is deleted with its schedule": {
			Resource:       unscheduled,
			GivenObjects:   []client.Object{job},
			ExpectDeletes:  []rtesting.DeleteRef{rtesting.NewDeleteRefFromObject(job, cases)},
			ExpectEvents:   []rtesting.Event{deleted("CronJob", "shop-backup")},
			ExpectResource: rtesting.With(unscheduled, notNeeded),
		},
	}, controller.ScheduleReconciler)
}
