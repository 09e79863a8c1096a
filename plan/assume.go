// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// standIn is the client of what other controllers would do.
const standIn = "stand-in"

// becomeReady returns the status of an object that is ready, by the kind, for objects that other controllers of
// Kubernetes make ready. It keeps what else the status has.
var becomeReady = map[schema.GroupKind]func(spec map[string]any, generation int64) map[string]any{
	{Group: "apps", Kind: "Deployment"}: func(spec map[string]any, generation int64) map[string]any {
		status := replicas(spec, generation, "replicas", "readyReplicas", "updatedReplicas", "availableReplicas")
		status["conditions"] = conditions("Available", "MinimumReplicasAvailable", "Progressing", "NewReplicaSetAvailable")
		return status
	},
	{Group: "apps", Kind: "StatefulSet"}: func(spec map[string]any, generation int64) map[string]any {
		status := replicas(
			spec, generation, "replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "currentReplicas",
		)
		status["currentRevision"], status["updateRevision"] = "planned", "planned"
		return status
	},
	{Group: "apps", Kind: "ReplicaSet"}: func(spec map[string]any, generation int64) map[string]any {
		return replicas(spec, generation, "replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas")
	},
	{Group: "apps", Kind: "DaemonSet"}: func(_ map[string]any, generation int64) map[string]any {
		return replicas(
			nil, generation, "currentNumberScheduled", "desiredNumberScheduled", "numberReady", "updatedNumberScheduled",
			"numberAvailable",
		)
	},
	{Group: "batch", Kind: "Job"}: func(map[string]any, int64) map[string]any {
		now := time.Now().UTC().Format(time.RFC3339)
		return map[string]any{
			"succeeded": int64(1), "startTime": now, "completionTime": now,
			"conditions": conditions("SuccessCriteriaMet", "CompletionsReached", "Complete", "CompletionsReached"),
		}
	},
	{Kind: "Pod"}: func(map[string]any, int64) map[string]any {
		return map[string]any{
			"phase":      "Running",
			"conditions": conditions("Initialized", "", "ContainersReady", "", "Ready", ""),
		}
	},
	{Kind: "PersistentVolumeClaim"}: func(spec map[string]any, _ int64) map[string]any {
		status := map[string]any{"phase": "Bound"}
		if requests, ok, _ := unstructured.NestedMap(spec, "resources", "requests"); ok {
			status["capacity"] = requests
		}
		return status
	},
	{Kind: "Service"}: func(spec map[string]any, _ int64) map[string]any {
		if spec["type"] != "LoadBalancer" {
			return nil
		}
		address := map[string]any{"ip": "192.0.2.1"} // of RFC 5737, for documentation
		return map[string]any{"loadBalancer": map[string]any{"ingress": []any{address}}}
	},
}

func replicas(spec map[string]any, generation int64, fields ...string) map[string]any {
	n, ok, _ := unstructured.NestedInt64(spec, "replicas")
	if !ok {
		n = 1
	}
	status := map[string]any{"observedGeneration": generation}
	for _, field := range fields {
		status[field] = n
	}
	return status
}

// conditions returns conditions that are true, of pairs of types and reasons.
func conditions(pairs ...string) []any {
	var all []any
	now := time.Now().UTC().Format(time.RFC3339)
	for i := 0; i < len(pairs); i += 2 {
		condition := map[string]any{"type": pairs[i], "status": "True", "lastTransitionTime": now}
		if pairs[i+1] != "" {
			condition["reason"] = pairs[i+1]
		}
		all = append(all, condition)
	}
	return all
}

// assume makes the objects ready that the plan has created or changed, and reports whether there are any.
func (o *overlay) assume(ctx context.Context) (bool, error) {
	events, err := o.assumeLocked(ctx)
	return len(events) > 0, o.deliver(events, err)
}

func (o *overlay) assumeLocked(ctx context.Context) (memEvents, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range o.order {
		content := o.server.Content(id.kind, id.key)
		become := becomeReady[id.kind.GroupKind()]
		if content == nil || become == nil {
			continue
		}
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
		before := &unstructured.Unstructured{Object: o.loaded[id]}
		is := assumed{u.GetUID(), u.GetGeneration()}
		if o.assumed[id] == is || is == (assumed{before.GetUID(), before.GetGeneration()}) ||
			u.GetDeletionTimestamp() != nil {
			continue
		}
		o.assumed[id] = is
		spec, _, _ := unstructured.NestedMap(u.Object, "spec")
		status := become(spec, u.GetGeneration())
		if status == nil {
			continue
		}
		u.SetGroupVersionKind(id.kind)
		u.Object["status"] = status
		if err := o.server.Client(standIn).Status().Update(ctx, u); err != nil {
			return nil, err
		}
	}
	return o.changed(), nil
}
