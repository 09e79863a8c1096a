// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const immutableMessage = "field is immutable when `immutable` is set"

// Upstream: pkg/apis/core/validation/validation.go: ValidateConfigMap
func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		at := field.NewPath("data").Key(key)
		errs = append(errs, invalid(at, key, utilvalidation.IsConfigMapKey(key))...)
		if _, ok := c.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.BinaryData)) {
		errs = append(errs, invalid(field.NewPath("binaryData").Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(c.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateConfigMapUpdate
func validateConfigMapUpdate(c, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if old.Immutable == nil || !*old.Immutable {
		return validateConfigMap(c)
	}
	if c.Immutable == nil || !*c.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
	}
	if !maps.Equal(c.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
	}
	if !reflect.DeepEqual(c.BinaryData, old.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableMessage))
	}
	return append(errs, validateConfigMap(c)...)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateSecret
func validateSecret(s *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		errs = append(errs, invalid(data.Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	missing := func(keys ...string) {
		for _, key := range keys {
			if _, ok := s.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
	}
	isJSON := func(key string) {
		if missing(key); s.Data[key] == nil {
			return
		}
		if err := json.Unmarshal(s.Data[key], &map[string]any{}); err != nil {
			errs = append(errs, field.Invalid(data.Key(key), "<secret contents redacted>", err.Error()))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(metaPath.Child("annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		isJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		isJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if s.Data[corev1.BasicAuthUsernameKey] == nil && s.Data[corev1.BasicAuthPasswordKey] == nil {
			missing(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		missing(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}

// Upstream: pkg/apis/core/validation/validation.go: ValidateSecretUpdate
func validateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	errs := validation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))
	if old.Immutable == nil || !*old.Immutable {
		return append(errs, validateSecret(s)...)
	}
	if s.Immutable == nil || !*s.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
	}
	if !reflect.DeepEqual(s.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
	}
	return append(errs, validateSecret(s)...)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaim
func validateVolumeClaim(c *corev1.PersistentVolumeClaim) field.ErrorList {
	return validateClaimSpec(&c.Spec, specPath)
}

// Upstream: pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimSpec
func validateClaimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.AccessModes) == 0 {
		errs = append(errs, field.Required(at.Child("accessModes"), "at least 1 access mode is required"))
	}
	pods, others := false, false
	for _, mode := range spec.AccessModes {
		switch mode {
		case corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce:
			others = true
		case corev1.ReadWriteOncePod:
			pods = true
		default:
			errs = append(errs, field.NotSupported(at.Child("accessModes"), mode, []corev1.PersistentVolumeAccessMode{
				corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod,
			}))
		}
	}
	if pods && others {
		errs = append(
			errs, field.Forbidden(at.Child("accessModes"), "may not use ReadWriteOncePod with other access modes"),
		)
	}
	storage := at.Child("resources").Key(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storage, ""))
	} else if size.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, size.String(), "must be greater than zero"))
	}
	return errs
}

// validateVolumeClaimUpdate allows a claim to be bound once, and a bound claim to grow.
// Upstream: pkg/apis/core/validation/validation.go: ValidatePersistentVolumeClaimUpdate
// Upstream: pkg/apis/core/validation/validation.go: validateStorageClassUpgradeFromNil
func validateVolumeClaimUpdate(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	spec, before := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	if before.VolumeName == "" {
		before.VolumeName = spec.VolumeName
	}
	class, had := old.Annotations[corev1.BetaStorageClassAnnotation]
	if before.StorageClassName == nil && spec.StorageClassName != nil && (!had || *spec.StorageClassName == class) {
		spec.StorageClassName = nil // a claim without a class may get one
	}
	if c.Status.Phase == corev1.ClaimBound {
		if spec.Resources.Requests != nil {
			spec.Resources.Requests[corev1.ResourceStorage] = before.Resources.Requests[corev1.ResourceStorage]
		}
		spec.VolumeAttributesClassName = before.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(spec, before) {
		errs = append(errs, field.Forbidden(specPath,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"+
				diff.Diff(*before, *spec)))
	}
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	sizeBefore := old.Spec.Resources.Requests[corev1.ResourceStorage]
	if capacity := old.Status.Capacity[corev1.ResourceStorage]; size.Cmp(sizeBefore) < 0 && size.Cmp(capacity) <= 0 {
		errs = append(
			errs,
			field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"),
		)
	}
	return append(
		errs, validation.ValidateImmutableField(c.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...,
	)
}

// Upstream: pkg/apis/core/validation/events.go: ValidateEventCreate, ValidateEventUpdate
func validateEvent(e *corev1.Event) field.ErrorList { return validateOldEvent(e, "reportingComponent") }

// validateOldEvent applies to both APIs of events. Only events with a time have all limits.
// Upstream: pkg/apis/core/validation/events.go: legacyValidateEvent
func validateOldEvent(e *corev1.Event, controllerField string) (errs field.ErrorList) {
	involved, isSystem := e.InvolvedObject.Namespace, e.Namespace == "default" || e.Namespace == "kube-system"
	mismatch := involved == "" && !isSystem
	if e.EventTime.IsZero() {
		mismatch = involved != e.Namespace && (involved != "" || e.Namespace != "default")
	}
	if mismatch {
		errs = append(errs, field.Invalid(
			field.NewPath("involvedObject", "namespace"), involved, "does not match event.namespace",
		))
	}
	if e.EventTime.IsZero() {
		return errs
	}
	if e.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath(controllerField), ""))
	}
	errs = append(errs, invalid(
		field.NewPath(controllerField), e.ReportingController, utilvalidation.IsQualifiedName(e.ReportingController),
	)...)
	for _, f := range []struct {
		name, value string
		limit       int
		optional    bool
	}{
		{"reportingInstance", e.ReportingInstance, 128, false},
		{"action", e.Action, 128, false},
		{"reason", e.Reason, 128, false},
		{"message", e.Message, 1024, true},
	} {
		if f.value == "" && !f.optional {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if len(f.value) > f.limit {
			errs = append(errs, field.Invalid(
				field.NewPath(f.name), "", fmt.Sprintf("can have at most %d characters", f.limit),
			))
		}
	}
	return errs
}

// validateNewEventUpdate is validateOldEvent for events of the group events.k8s.io.
// Upstream: pkg/apis/core/validation/events.go: ValidateEventUpdate
func validateNewEventUpdate(e, _ *eventsv1.Event) field.ErrorList {
	return validateOldEvent(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace}, InvolvedObject: e.Regarding, EventTime: e.EventTime,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance, Action: e.Action,
		Reason: e.Reason, Message: e.Note,
	}, "reportingController")
}

// validateNewEvent applies to new events of the group events.k8s.io.
// Upstream: pkg/apis/core/validation/events.go: ValidateEventCreate, validateV1EventSeries
func validateNewEvent(e *eventsv1.Event) field.ErrorList {
	errs := validateNewEventUpdate(e, nil)
	if e.Series != nil && e.Series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if e.Series != nil && e.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+e.Type))
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.DeprecatedFirstTimestamp.IsZero()},
		{"lastTimestamp", !e.DeprecatedLastTimestamp.IsZero()},
		{"count", e.DeprecatedCount != 0},
		{"source", e.DeprecatedSource != corev1.EventSource{}},
	} {
		if f.set {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	return errs
}
