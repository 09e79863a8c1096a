// SPDX-License-Identifier: Apache-2.0

package mutation

// reasons explain why mutants survive. Each has the mutants that it applies to: mistake and site, with the entries.
var reasons = []reason{
	{
		why: "The order of the two writes does not matter: every reconcile checks each of them, and repairs what a crash " +
			"leaves in between.",
		mutants: map[string][]string{
			"late at create ConfigMap": {
				"c06-conflict-waits-for-event", "c06-missing-taken-for-final", "c11-no-owner-reference", "c13-service-not-watched",
				"c14-error-logged",
				"c14-remaining-time-rounded-down", "c14-retried-on-the-spot-only", "c16-renamed", "correct-parallel-creates",
				"correct-revisions", "correct-surplus-with-precondition",
			},
			"late at create Deployment": {
				"c07-rolled-back-success", "c08-appended-once-more", "c12-ready-before-rollout", "c12-ready-by-old-numbers",
				"c12-ready-for-ever", "c13-status-events-filtered", "c14-deadline-without-timer",
				"correct-aggregated-status", "correct-conditions", "correct-waits-for-job",
			},
			"late at create Job": {
				"c02-run-remembered-in-status", "c03-replace-without-uid", "correct-waits-for-job",
			},
			"late at create PersistentVolumeClaim": {
				"c01-resize-recorded-first", "c04-volume-of-deleted-pod", "c11-scale-down-leaves-claim",
			},
			"late at create Pod": {
				"c04-volume-of-deleted-pod", "c09-replaces-rejected-pods", "c11-scale-down-leaves-claim",
				"c15-cached-object-changed", "c15-first-is-leader",
				"c15-members-in-list-order", "correct-one-after-the-other",
			},
			"late at create ReplicaSet":            {"c02-revision-by-search"},
			"late at create Secret":                {"c01-attempt-not-undone", "c01-key-of-generated-name"},
			"late at create Service":               {"c07-rolled-back-success", "correct-conditions"},
			"late at create ServiceAccount":        {"correct-two-scopes"},
			"late at delete ConfigMap":             {"correct-locked-patches", "correct-shared-by-two"},
			"late at delete Deployment":            {"c07-rolled-back-success"},
			"late at delete PersistentVolumeClaim": {"c05-volumes-of-successor"},
			"late at delete Pod":                   {"c04-volume-of-deleted-pod", "c11-scale-down-leaves-claim"},
			"late at delete ReplicaSet":            {"c02-revision-by-search"},
			"late at update ConfigMap": {
				"c06-conflict-waits-for-event", "c09-heartbeat-in-status", "c09-version-in-status", "c12-condition-of-another-lost",
				"c12-transition-time",
				"correct-periodic", "correct-time-of-change",
			},
			"late at update Deployment": {
				"c08-appended-once-more", "c13-status-events-filtered", "correct-aggregated-status", "correct-conditions",
				"correct-waits-for-job",
			},
			"late at update PersistentVolumeClaim": {"c01-resize-recorded-first"},
			"late at update Service":               {"c07-rolled-back-success"},
			"late at update Widget": {
				"c05-volumes-of-successor", "c10-waits-for-garbage-collector", "c16-orphans-deleted",
			},
			"late at update Widget/status": {
				"c01-attempt-not-undone", "c01-phase-before-job", "correct-name-recorded-first",
			},
		},
	},
	{
		why: "The garbage collector deletes the object, because it has an owner reference in addition to the " +
			"finalizer.",
		mutants: map[string][]string{
			"drop at delete ConfigMap":                     {"correct-locked-patches"},
			"drop at delete PersistentVolumeClaim":         {"c05-volumes-of-successor"},
			"ignore error at delete ConfigMap":             {"correct-locked-patches", "correct-shared-by-two"},
			"ignore error at delete PersistentVolumeClaim": {"c05-volumes-of-successor"},
		},
	},
	{
		why: "The next reconcile compares the labels and adds them.",
		mutants: map[string][]string{
			"no labels at create ConfigMap": {
				"c03-record-of-another", "c06-conditions-replaced", "c06-missing-taken-for-final", "c16-foreign-deleted",
				"c16-known-by-label", "c16-orphans-deleted",
			},
			"no labels at create EndpointSlice": {"c08-endpoints-in-list-order"},
			"no labels at create Job":           {"c05-run-again"},
			"no labels at create Secret":        {"c08-time-of-last-sync"},
			"no labels at create Service":       {"c07-rolled-back-success"},
		},
	},
	{
		missed: true,
		why: "The name of the object differs in each run, so its fields cannot be compared, and nothing " +
			"selects by the label.",
		mutants: map[string][]string{
			"no labels at create Secret": {"correct-name-recorded-first"},
		},
	},
	{
		why: "The code that follows does nothing for an empty object, or fails because it has no name, no owner and " +
			"no UID. A later attempt finds the object, or returns at once.",
		mutants: map[string][]string{
			"ignore error at get ConfigMap": {"c02-port-freed-on-error"},
			"ignore error at get Widget": {
				"c01-phase-before-job", "c01-resize-recorded-first", "c02-list-then-generate", "c03-adopt-for-predecessor",
				"c04-volume-of-deleted-pod",
				"c05-scaled-by-the-past", "c08-replaced-for-defaults", "c11-scale-down-leaves-claim", "c13-label-removed",
				"c15-cached-object-changed",
				"c15-first-is-leader", "c15-members-in-list-order", "c15-no-container-status-yet", "c15-number-is-count",
				"c15-surplus-by-position", "c16-foreign-deleted", "c16-known-by-label", "c16-renamed",
				"correct-job-once", "correct-name-recorded-first", "correct-parallel-creates", "correct-surplus-with-precondition",
			},
		},
	},
	{
		why: "The update that follows creates the object: the API server allows this for the kind.",
		mutants: map[string][]string{
			"ignore error at get ClusterRole": {"c11-cluster-scoped-child", "correct-two-scopes"},
			"ignore error at get Service": {
				"c07-rolled-back-success", "c11-no-owner-reference", "c13-service-not-watched", "c14-error-logged",
				"c14-retried-on-the-spot-only",
				"correct-conditions",
			},
		},
	},
	{
		why: "The controller requeues after some time, and retries then.",
		mutants: map[string][]string{
			"ignore error at create ConfigMap":     {"c09-comes-back-at-once", "c09-heartbeat-in-status", "correct-periodic"},
			"ignore error at delete Deployment":    {"c10-waits-for-garbage-collector"},
			"ignore error at update ConfigMap":     {"c09-comes-back-at-once", "c09-heartbeat-in-status", "correct-periodic"},
			"ignore error at update Widget/status": {"c09-heartbeat-in-status", "correct-periodic"},
		},
	},
	{
		why: "As a consequence the next request of the same reconcile fails, so the reconcile is retried.",
		mutants: map[string][]string{
			"ignore error at delete Job":         {"c03-replace-without-uid"},
			"ignore error at delete StatefulSet": {"c08-replaced-for-defaults"},
		},
	},
	{
		missed: true,
		why: "Events of other objects trigger the next attempt. A failure needs more faults, or another order of events, " +
			"than in the run.",
		mutants: map[string][]string{
			"ignore error at create Deployment":    {"correct-aggregated-status"},
			"ignore error at create Pod":           {"c15-no-container-status-yet"},
			"ignore error at update Deployment":    {"correct-aggregated-status"},
			"ignore error at update Widget/status": {"correct-name-given-by-cloud"},
		},
	},
	{
		why: "Only this controller writes the status. A status based on a stale cache is written again once the cache has " +
			"caught up, or is the same, because it is computed in the same way.",
		mutants: map[string][]string{
			"no version at update Bucket/status": {"c07-instance-without-token", "c07-token-not-saved", "c11-moved-bucket"},
			"no version at update Widget/status": {
				"c01-attempt-not-undone", "c01-key-of-generated-name", "c01-phase-before-job", "c01-resize-recorded-first",
				"c02-port-freed-on-error",
				"c02-revision-by-search", "c02-run-remembered-in-status", "c03-record-of-another", "c03-replace-without-uid",
				"c06-conflict-waits-for-event",
				"c06-missing-taken-for-final", "c06-retry-with-cache", "c07-quota-added-twice", "c07-rolled-back-success",
				"c08-appended-once-more",
				"c09-heartbeat-in-status", "c09-replaces-rejected-pods", "c09-user-error-retried", "c09-version-in-status",
				"c11-failed-lookup-starts-over",
				"c12-degraded-stays", "c12-generation-of-a-later-read", "c12-ready-before-rollout", "c12-shadowed-error",
				"c12-transition-time",
				"c13-secret-taken-for-primary", "c13-secret-without-generation", "c13-status-events-filtered",
				"c14-deadline-without-timer",
				"c14-failures-are-final", "c14-remaining-time-rounded-down", "c15-members-in-list-order",
				"c12-ready-by-old-numbers", "c12-ready-for-ever", "correct-backoff-of-its-own", "correct-job-once",
				"correct-name-given-by-cloud", "correct-name-recorded-first",
				"correct-one-after-the-other", "correct-periodic", "correct-random-secret", "correct-time-of-change",
			},
		},
	},
	{
		missed: true,
		why: "It needs two faults in combination, and more pairs than a default run tries. A longer search finds " +
			"some of these.",
		mutants: map[string][]string{
			"ignore error at create Service": {"correct-conditions"},
			"late at update Widget/status":   {"correct-waits-for-job"},
			"no version at update Widget":    {"c05-volumes-of-successor"},
			"no version at update Widget/status": {
				"c04-failure-by-transition", "c05-run-again", "c15-no-container-status-yet", "correct-aggregated-status",
				"correct-conditions",
			},
		},
	},
	{
		missed: true,
		why: "For a moment, Ready reports the completed rollout before the change. Nothing checks the desired state " +
			"of the workload then.",
		mutants: map[string][]string{
			"late at update Deployment": {"c12-ready-by-old-numbers"},
		},
	},
	{
		missed: true,
		why: "A patch contains only the difference. No other client writes that part, so nothing is lost; with another " +
			"writer of the same list, data would be lost.",
		mutants: map[string][]string{
			"no version at patch ConfigMap": {"correct-locked-patches"},
			"no version at patch Pod":       {"c15-first-is-leader"},
			"no version at patch Widget":    {"correct-locked-patches"},
		},
	},
	{
		why: "The object is not wanted, whatever its UID is, or its name is never used again; an object that is deleted " +
			"needlessly is created again in the next reconcile.",
		mutants: map[string][]string{
			"no precondition at delete ConfigMap": {
				"c13-label-removed", "c16-foreign-deleted", "c16-renamed", "correct-locked-patches",
				"correct-parallel-creates", "correct-revisions",
				"correct-shared-by-two",
				"correct-surplus-with-precondition",
			},
			"no precondition at delete Deployment":            {"c07-rolled-back-success", "c10-waits-for-garbage-collector"},
			"no precondition at delete Job":                   {"c05-run-again", "correct-job-once"},
			"no precondition at delete PersistentVolumeClaim": {"c05-scaled-by-the-past"},
			"no precondition at delete Pod": {
				"c02-list-then-generate", "c04-volume-of-deleted-pod", "c11-scale-down-leaves-claim", "c15-surplus-by-position",
			},
			"no precondition at delete ReplicaSet": {"c02-revision-by-search"},
		},
	},
	{
		missed: true,
		why: "A volume that was created again after the cache saw it is deleted, with its data. The steps " +
			"never want a volume again that was unwanted while the cache is stale.",
		mutants: map[string][]string{
			"no precondition at delete PersistentVolumeClaim": {
				"c04-volume-of-deleted-pod", "c05-volumes-of-successor", "c11-scale-down-leaves-claim",
			},
			"no precondition at delete Secret": {"c03-sweep-by-cache"},
		},
	},
	{
		missed: true,
		why:    "The pods of the job would stay. The world of the scenario creates none.",
		mutants: map[string][]string{
			"no propagation at delete Job": {"c03-replace-without-uid", "c05-run-again"},
		},
	},
}
