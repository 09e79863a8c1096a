// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
)

func template(labels Object) Object {
	return Object{
		"metadata": Object{"labels": labels},
		"spec":     Object{"containers": []any{Object{"name": "app", "image": "example.com/app:1"}}},
	}
}

func workload() Object {
	return Object{
		"spec": Object{"selector": Object{"matchLabels": Object{"app": "x"}}, "template": template(Object{"app": "x"})},
	}
}

var templateChanges = []Edit{
	Set("spec/template/spec/containers/[name=app]/image", "example.com/app:2"),
	Set("spec/template/spec/containers/[name=app]/image", "example.com/app"),
	Set("spec/template/spec/containers/[name=side]", Object{
		"name": "side", "image": "example.com/side:1",
	}), Remove("spec/template/spec/containers/[name=side]"),
	Set("spec/template/metadata/annotations/restarted", "now"), Set(
		"spec/template/spec/terminationGracePeriodSeconds", int64(5),
	),
	Set("spec/template/spec/containers/[name=app]/ports", []any{Object{"containerPort": int64(80)}}),
	Set("spec/template/spec/containers/[name=app]/env", []any{
		Object{"name": "A", "value": "1"},
		Object{"name": "B", "valueFrom": Object{"fieldRef": Object{"fieldPath": "metadata.name"}}},
	}),
	Set("spec/template/spec/containers/[name=app]/resources", Object{"limits": Object{"cpu": "1000m", "memory": "0.5Gi"}}),
	Set("spec/template/spec/containers/[name=app]/readinessProbe", Object{"tcpSocket": Object{"port": "web"}}),
	Set("spec/template/spec/serviceAccountName", "robot"), Set("spec/template/spec/nodeSelector", Object{"disk": "ssd"}),
	Set("spec/template/spec/volumes", []any{
		Object{"name": "v", "secret": Object{"secretName": "a"}}, Object{"name": "e", "emptyDir": Object{}},
	}),
	Set("spec/template/spec/securityContext", Object{"runAsNonRoot": true}),
}

var deployments = &Kind{
	GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
	Status:           true,
	Scale:            true,
	Strategic:        true,
	Content:          workload(),
	Applied:          workload(),
	Changes: append([]Edit{
		Set("spec/replicas", int64(0)), Set("spec/replicas", int64(2)), Set("spec/replicas", int64(3)),
		Remove("spec/replicas"), Set("spec/paused", true),
		Set("spec/minReadySeconds", int64(5)), Set("spec/strategy", Object{
			"type": "Recreate",
		}), Set("spec/revisionHistoryLimit", int64(3)),
		Set("spec/strategy", Object{
			"type": "RollingUpdate", "rollingUpdate": Object{"maxSurge": "50%", "maxUnavailable": int64(0)},
		}), Remove("spec/strategy"),
	}, templateChanges...),
	Faults: []Edit{
		Set("spec/selector", Object{
			"matchLabels": Object{"app": "y"},
		}), Set("spec/replicas", int64(-1)), Set("spec/template/metadata/labels/app", "y"),
		Set("spec/strategy", Object{"type": "Recreate", "rollingUpdate": Object{"maxSurge": int64(1)}}),
		Set("spec/template/spec/containers", []any{}), Set("spec/template/spec/restartPolicy", "Never"),
		Set("spec/selector", Object{}), Remove("spec/template"),
		Set("spec/strategy", Object{"rollingUpdate": Object{"maxSurge": int64(0), "maxUnavailable": int64(0)}}),
	},
	StatusChanges: []Edit{
		Set("status/replicas", int64(2)), Set("status/readyReplicas", int64(1)), Set("status/observedGeneration", int64(1)),
		Set("status/observedGeneration", int64(2)),
		Set("status/conditions", []any{condition("Available", "True", "2001-01-01T00:00:00Z")}),
		Set("status/conditions/[type=Progressing]", condition("Progressing", "True", "2001-01-01T00:00:00Z")),
		Remove("status/conditions"),
		Set("status/availableReplicas", int64(1)), Set("status/unavailableReplicas", int64(1)),
		Set("status/updatedReplicas", int64(1)),
	},
	StatusFaults: []Edit{
		Set("status/replicas", int64(-1)), Set("status/readyReplicas", int64(9)), Set("status/availableReplicas", int64(9)),
	},
}

var statefulSets = &Kind{
	GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	Status:           true,
	Scale:            true,
	Strategic:        true,
	Content:          workload(),
	Applied:          workload(),
	Changes: append([]Edit{
		Set("spec/replicas", int64(0)), Set("spec/replicas", int64(2)), Remove("spec/replicas"), Set(
			"spec/minReadySeconds", int64(5),
		),
		Set("spec/updateStrategy", Object{"type": "OnDelete"}), Set("spec/updateStrategy", Object{
			"type": "RollingUpdate", "rollingUpdate": Object{"partition": int64(1)},
		}),
		Set("spec/persistentVolumeClaimRetentionPolicy", Object{
			"whenDeleted": "Delete", "whenScaled": "Retain",
		}), Set("spec/ordinals", Object{"start": int64(3)}),
	}, templateChanges...),
	Faults: []Edit{
		Set("spec/serviceName", "another"), Set("spec/podManagementPolicy", "Parallel"), Set("spec/selector", Object{
			"matchLabels": Object{"app": "y"},
		}),
		Set("spec/volumeClaimTemplates", []any{Object{"metadata": Object{"name": "data"}, "spec": Object{
			"accessModes": []any{"ReadWriteOnce"}, "resources": Object{"requests": Object{"storage": "1Gi"}},
		}}}), Set("spec/replicas", int64(-1)),
	},
	StatusChanges: []Edit{
		Set("status/replicas", int64(2)), Set("status/readyReplicas", int64(1)), Set("status/observedGeneration", int64(1)),
		Set("status/currentRevision", "x-1"),
		Set("status/conditions", []any{condition("Ready", "True", "2001-01-01T00:00:00Z")}),
	},
	StatusFaults: []Edit{Set("status/replicas", int64(-1)), Set("status/readyReplicas", int64(9))},
}

var jobs = &Kind{
	GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"),
	Status:           true,
	Strategic:        true,
	NoCopies:         true, // labels with a UID in the template
	Content:          jobContent(),
	Applied:          jobContent(),
	Changes: []Edit{
		Set("spec/parallelism", int64(2)), Set("spec/parallelism", int64(0)), Set("spec/suspend", false), Set(
			"spec/backoffLimit", int64(2),
		),
		Set("spec/activeDeadlineSeconds", int64(100)), Set("spec/ttlSecondsAfterFinished", int64(10)),
		Remove("spec/ttlSecondsAfterFinished"),
	},
	Faults: []Edit{
		Set("spec/template/spec/containers/[name=app]/image", "example.com/app:2"), Set("spec/completions", int64(3)),
		Set("spec/selector", Object{
			"matchLabels": Object{"app": "y"},
		}), Set("spec/template/spec/restartPolicy", "Always"), Set("spec/parallelism", int64(-1)),
		Set("spec/manualSelector", true), Set("spec/backoffLimit", int64(-1)),
	},
	StatusChanges: []Edit{
		Set("status/active", int64(1)), Set("status/succeeded", int64(1)), Set("status/failed", int64(1)),
		Set("status/startTime", "2001-01-01T00:00:00Z"), Set("status/ready", int64(1)),
	},
	StatusFaults: []Edit{
		Set("status/active", int64(-1)),
		Set("status/conditions", []any{condition("Complete", "True", "2001-01-01T00:00:00Z")}),
	},
}

func jobContent() Object {
	content := Object{"spec": Object{"template": template(Object{"app": "x"})}}
	return edited(content, []Edit{Set("spec/template/spec/restartPolicy", "Never")})
}
