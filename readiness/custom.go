// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// condition is a status condition of any kind.
type condition struct {
	status, reason, message string
	// observedGeneration is 0 if the condition has none.
	observedGeneration int64
}

func conditionsOf(content map[string]any) map[string]condition {
	list, _, _ := unstructured.NestedFieldNoCopy(content, "status", "conditions")
	items, _ := list.([]any)
	conditions := make(map[string]condition, len(items))
	for _, item := range items {
		fields, _ := item.(map[string]any)
		kind, _ := fields["type"].(string)
		c := condition{}
		c.status, _ = fields["status"].(string)
		c.reason, _ = fields["reason"].(string)
		c.message, _ = fields["message"].(string)
		c.observedGeneration, _, _ = unstructured.NestedInt64(fields, "observedGeneration")
		conditions[kind] = c
	}
	return conditions
}

var kindOfDefinitions = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// ofContent applies the rules for definitions of custom resources, and for custom resources.
func ofContent(kind schema.GroupKind, content map[string]any) Readiness {
	if kind == kindOfDefinitions {
		return ofDefinition(conditionsOf(content))
	}
	generation, number, reported := generations(content)
	if reported {
		if r, ok := observed(generation, number); !ok {
			return r
		}
	}
	return ofCustom(conditionsOf(content), generation, reported)
}

// generations returns the generation of an object and the one that its status describes, and whether the status has it.
// A typed object has the field without a value.
func generations(content map[string]any) (generation, observedGeneration int64, reported bool) {
	generation, _, _ = unstructured.NestedInt64(content, "metadata", "generation")
	observedGeneration, _, _ = unstructured.NestedInt64(content, "status", "observedGeneration")
	return generation, observedGeneration, observedGeneration > 0
}

// ofDefinition follows kstatus.
func ofDefinition(conditions map[string]condition) Readiness {
	if names := conditions["NamesAccepted"]; names.status == "False" {
		return failed(names.reason, orElse(names.message, "the names are not accepted"))
	}
	return ofCondition(conditions["Established"], 0, "the API is not served yet")
}

// ofCustom follows the conventions of kstatus for conditions, and knows more: Succeeded of resources that run to
// completion, Available, and those that report a problem: Failed, Degraded, Healthy.
//
// Unlike kstatus, a resource that reports neither a known condition nor an observed generation is not ready: usually,
// its controller has not seen it yet.
func ofCustom(conditions map[string]condition, generation int64, reported bool) Readiness {
	_, hasStalled := conditions["Stalled"]
	_, hasReconciling := conditions["Reconciling"]
	if c := conditions["Stalled"]; c.status == "True" && c.isCurrent(generation) {
		return failed(c.reason, orElse(c.message, "the controller has given up"))
	}
	if c := conditions["Failed"]; c.status == "True" && c.isCurrent(generation) {
		return failed(c.reason, orElse(c.message, "it has failed"))
	}
	if c := conditions["Reconciling"]; c.status == "True" {
		return progressing(orElse(c.reason, ReasonUpdating), "%s", orElse(c.message, "the controller is reconciling it"))
	}
	if c, ok := conditions["Ready"]; ok {
		return ofCondition(c, generation, "it is not ready")
	}
	if c, ok := conditions["Succeeded"]; ok {
		if c.status == "False" && c.isCurrent(generation) {
			return failed(c.reason, orElse(c.message, "it did not succeed"))
		}
		return ofCondition(c, generation, "it has not succeeded yet")
	}
	if c := conditions["Degraded"]; c.status == "True" && c.isCurrent(generation) {
		return progressing(orElse(c.reason, "Degraded"), "%s", orElse(c.message, "it is degraded"))
	}
	if c, ok := conditions["Healthy"]; ok && c.status != "True" && c.isCurrent(generation) {
		return ofCondition(c, generation, "it is not healthy")
	}
	if c, ok := conditions["Available"]; ok {
		return ofCondition(c, generation, "it is not available")
	}
	if reported || hasStalled || hasReconciling {
		return ready("")
	}
	return unknown("the status does not report whether it is ready")
}

// ofCondition returns Ready if a condition is True.
func ofCondition(c condition, generation int64, otherwise string) Readiness {
	switch {
	case !c.isCurrent(generation):
		r, _ := observed(generation, c.observedGeneration)
		return r
	case c.status == "True":
		return ready("%s", c.message)
	}
	return progressing(orElse(c.reason, ReasonPending), "%s", orElse(c.message, otherwise))
}

// isCurrent reports whether the condition may describe the current generation.
func (c condition) isCurrent(generation int64) bool {
	if c.observedGeneration == 0 {
		return true
	}
	_, ok := observed(generation, c.observedGeneration)
	return ok
}
