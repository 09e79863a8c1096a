// SPDX-License-Identifier: Apache-2.0

package generations

// rowTests has the tests of each row of the migration guides, by its cell "old".
var rowTests = map[string]map[string][]string{
	"v0.1-v0.5.md": {
		"`ParentReconciler{Type: &T{}}`":                              {"TestV05_ParentReconciler", "TestGoFix"},
		"`ParentReconciler.SubReconcilers` (v0.1)":                    {"TestV05_ParentReconciler", "TestGoFix"},
		"`CastParent{Type: &D{}}`":                                    {"TestV05_CastParent", "TestGoFix"},
		"`AddParentFinalizer`, `ClearParentFinalizer`":                {"TestV05_AddParentFinalizer", "TestGoFix"},
		"`RetrieveParentConfig`, `StashParentConfig`":                 {"TestGoFix"},
		"`RetrieveParentType`, `StashParentType`":                     {"TestGoFix"},
		"`RetrieveCastParentType`, `StashCastParentType`":             {"TestGoFix"},
		"`SyncReconciler{Sync: func(ctx, *T) error}`":                 {"TestV05_WithFinalizer"},
		"`Sync: func(ctx, *T) (Result, error)`":                       {"TestMovedProgram_V11"},
		"`SyncReconciler.Config`, `ChildReconciler.Config`":           {"TestV05_WithConfig"},
		"`ChildReconciler{ChildType: &C{}, ChildListType: &CList{}}`": {"TestV05_ParentReconciler"},
		"`ChildReconciler.ParentType`, `IndexField` (v0.1, v0.2)":     {"TestV05_ChildIndex"},
		"`IndexControllersOfType` (v0.1, v0.2)":                       {"TestV05_ChildIndex"},
		"`ReflectChildStatusOnParent: func(parent, child, err)`":      {"TestV05_ParentReconciler"},
		"`SemanticEquals`":                                            {"TestMovedProgram_V11"},
		"`MergeBeforeUpdate`, `Sanitize`, `Finalizer`, `OurChild`": {
			"TestV05_ParentReconciler", "TestV19_ChildReconcilerFinalizer",
		},
		"`WithConfig{}`, `WithFinalizer{}`, `Sequence{}`":               {"TestV05_WithConfig", "TestV05_WithFinalizer"},
		"`Config.Scheme` (v0.1, v0.2)":                                  {"TestV05_Config"},
		"`Config.Log`":                                                  {"TestMovedProgram_V11"},
		"`EnqueueTracked(by, tracker, scheme)`":                         {"TestV05_Watches"},
		"`Tracker.Track`, `Lookup`":                                     {"TestV05_TrackerKey", "TestMovedProgram_V11"},
		"`tracker.NewKey`, `tracker.Key`, with `Track`":                 {"TestV05_TrackerKey"},
		"`&source.Kind{Type: &corev1.ConfigMap{}}` in `Watches`":        {"TestV05_Watches"},
		"`validation.FieldErrors`, `Err…`":                              {"TestV05_FieldErrors", "TestV05_Config"},
		"`FieldErrors.Also`, `ViaField`, `ViaIndex`":                    {"TestV05_FieldErrors"},
		"`apis.Condition`, `apis.Conditions`, `VolatileTime` (to v0.3)": {"TestV05_Conditions"},
		"`apis.ConditionType` (to v0.3)":                                {"TestV05_Conditions"},
		"`Condition.IsTrue()`, … (to v0.3)":                             {"TestV05_Conditions"},
		"conditions without a reason (to v0.3)":                         {"TestV05_ConditionsNeedAReason"},
		"`apis.ConditionSeverity` (to v0.3)":                            {"TestV05_ConditionSeverity"},
		"`MarkTrue(t)` (to v0.3)":                                       {"TestV05_ConditionSeverity"},
		"`ConditionSet.Manage(status)`":                                 {"TestV05_ConditionSeverity"},
		"`apis.Object` (to v0.2)":                                       {"TestV11_SharedSubReconciler"},
		"`rtesting.ReconcilerTestSuite`, `Key`": {
			"TestV05_ReconcilerTestSuite", "TestV11_ReconcilerTests",
		},
		"`rtesting.SubReconcilerTestSuite{}`, `Parent`, `ExpectParent`": {
			"TestV05_SubReconcilerTestSuite", "TestV05_FinalizerCase", "TestV11_AdditionalConfigs",
		},
		"`rts.Test(…)`": {"TestV05_ReconcilerTestSuite", "TestGoFix"},
		"`rtesting.Factory`, `rtesting.Wrapper`, `testing/factories`": {"TestV05_Factories"},
		"`rtesting.TestLogger(t)`":                                    {"TestV05_TestLogger"},
		"`rtesting.TestResource`":                                     {"TestV05_SubReconcilerTestSuite"},
	},
	"v0.6-v0.11.md": {
		"`ResourceReconciler{Type: &T{}}`": {
			"TestMovedProgram_V11",
		},
		"`AggregateReconciler{Type: &T{}}`, with `ListType` in some versions": {
			"TestV11_AggregateReconciler", "TestMovedProgram_V11",
		},
		"`SyncReconciler{Sync: func(ctx, *T) error}`":                 {"TestMovedProgram_V11"},
		"`Sync: func(ctx, *T) (Result, error)`":                       {"TestMovedProgram_V11"},
		"`Finalize: func(ctx, *T) (Result, error)`":                   {"TestMovedProgram_V11"},
		"`ChildReconciler{ChildType: &C{}, ChildListType: &CList{}}`": {"TestMovedProgram_V11"},
		"`ReflectChildStatusOnParent: func(parent, child, err)`":      {"TestMovedProgram_V11"},
		"`SemanticEquals` on ChildReconciler, AggregateReconciler, ResourceManager": {
			"TestMovedProgram_V11", "TestV11_ResourceManager",
		},
		"`DesiredResource: func(…) (client.Object, error)`": {"TestMovedProgram_V11"},
		"`Sanitize: func(*C) SomeType`":                     {"TestMovedProgram_V11"},
		"`Sequence{…}`":                                     {"TestMovedProgram_V11"},
		"`CastResource{Type: &D{}}`":                        {"TestMovedProgram_V11"},
		"a subreconciler that several kinds share": {
			"TestMovedProgram_V11", "TestV11_SharedSubReconciler",
		},
		"`WithConfig{}`, `WithFinalizer{}`": {"TestMovedProgram_V11"},
		"`AdmissionWebhookAdapter{Type: &T{}}`": {
			"TestMovedProgram_V11", "TestV11_AdmissionWebhookAdapter",
		},
		"`ResourceManager{Type: &C{}}`": {"TestMovedProgram_V11", "TestGoFix"},
		"`Config.Log`":                  {"TestMovedProgram_V11"},
		"`RetrieveConfig(ctx)`":         {"TestMovedProgram_V11"},
		"`ParentReconciler`, `CastParent`, `RetrieveParentType`, …": {"TestGoFix"},
		"`Tracker.Track`, `Lookup`": {
			"TestMovedProgram_V11", "TestV05_TrackerKey",
		},
		"`EnqueueTracked(ctx, &corev1.ConfigMap{})` with `source.Kind`": {"TestMovedProgram_V11"},
		"`validation.FieldErrors`, `Err…`": {
			"TestMovedProgram_V11", "TestV05_Config",
		},
		"`rtesting.BoolPtr`, `StringPtr`, …": {"TestMovedProgram_V11"},
		"`rtesting.SubReconcilerTests{}`, `SubReconcilerTestSuite{}`": {
			"TestMovedProgram_V11", "TestV05_SubReconcilerTestSuite",
		},
		"`rts.Test(…)`": {"TestGoFix"},
		"`ReconcilerTestCase.Key`, `SubReconcilerTestCase.Parent`, `ExpectParent`": {
			"TestV05_ReconcilerTestSuite", "TestV05_FinalizerCase", "TestV11_ReconcilerTests", "TestV11_AdditionalConfigs",
		},
		"cases that expect status updates": {"TestMovedProgram_V11"},
		"objects with a deletion timestamp in tests": {
			"TestMovedProgram_V11", "TestV11_DeletedObjectsNeedAFinalizer",
		},
		"`Prepare`, `CleanUp` that take `t` alone (to v0.7)":    {"TestMovedProgram_V11"},
		"`rtesting.NewFakeClient(scheme, …)`, `CompareActions`": {"TestV11_ExpectConfig"},
		"`rtesting.AssertErrorEqual`, `AssertErrorMessagef`":    {"TestMovedProgram_V11"},
	},
	"v0.12-v0.22.md": {
		"`ResourceManager[T]`":                 {"TestGoFix", "TestMovedProgram_V19"},
		"a variable or field of that type":     {"TestRuntime_ObjectManager"},
		"`ChildReconciler.SetResourceManager`": {"TestRuntime_ObjectManager"},
		"`MergeBeforeUpdate`, `HarmonizeImmutableFields`, `Sanitize` on ChildReconciler": {"TestMovedProgram_V19"},

		"the same on ChildSetReconciler":  {"TestV19_ObjectManagerFields"},
		"the same on AggregateReconciler": {"TestV19_ObjectManagerFields"},

		"`ChildReconciler.Finalizer`":                    {"TestV19_ChildReconcilerFinalizer", "TestV11_WithConfig"},
		"`HaltSubReconcilers`":                           {"TestMovedProgram_V19", "TestV19_HaltedResult"},
		"a halt of a root in tests (to v0.19)":           {"TestMovedProgram_V19", "TestV19_HaltedResult"},
		"`rtime.RetrieveTime`, as documented":            {"TestGoFix"},
		"`ConditionSet.Manage(status)`":                  {"TestV05_ConditionSeverity"},
		"status `InitializeConditions()`":                {"TestV19_InitializeConditions"},
		"`apis.NowFunc` (to v0.13)":                      {"TestV19_Time"},
		"`ConditionManager.SetCondition`, …":             {"TestV05_ConditionSeverity"},
		"stash functions in `reconcilers`":               {"TestV05_Stash", "TestV19_Stash"},
		"`reconcilers.Kind`, `source.Kind` in `Watches`": {"TestV05_Watches"},
		"`EnqueueTracked(ctx, obj)`":                     {"TestV05_Watches"},
		"`Tracker.Track`, `TrackChild`, `Lookup`":        {"TestV05_TrackerKey", "TestMovedProgram_V11"},
		"`tracker.New(lease)`":                           {"TestV05_TrackerKey"},
		"`tracker.Key`, `tracker.NewKey`":                {"TestV05_TrackerKey"},
		"`AdmissionWebhookAdapter.Build`":                {"TestV19_WebhookWithContext"},
		"`rtesting.SafeDeployDiff`":                      {"TestV19_IgnoreAllUnexported"},

		"`rtesting.ReconcilerTests`, `SubReconcilerTests`, `AdmissionWebhookTests`, `ExpectConfig`, …": {
			"TestV11_ReconcilerTests", "TestV11_SubReconcilerTests", "TestV11_AdmissionWebhookTests", "TestV11_ExpectConfig",
		},

		"`AdmissionWebhookTests.Run`":        {"TestV11_AdmissionWebhookTests", "TestV19_WebhookWithContext"},
		"`rtesting.NewFakeClientWrapper(c)`": {"TestV19_NewFakeClientWrapper"},

		"`ParentReconciler`": {"TestGoFix"},
		"`CastParent`":       {"TestGoFix"},
		"`ResourceManager`":  {"TestGoFix"},
		"`AddParentFinalizer`, `ClearParentFinalizer`":                             {"TestGoFix"},
		"`RetrieveParentConfig`, `RetrieveParentConfigOrDie`, `StashParentConfig`": {"TestGoFix"},
		"`RetrieveParentType`, `StashParentType`":                                  {"TestGoFix"},
		"`RetrieveCastParentType`, `StashCastParentType`":                          {"TestGoFix"},
		"`rtime.RetrieveTime`":                                                     {"TestGoFix"},
		"`Test` of `ReconcilerTests`, `ReconcilerTestSuite`, `ReconcilerTestCase`": {"TestGoFix"},
	},
	"runtime.md": {
		"`reconciler.io/runtime/reconcilers`":                                            {"TestMovedProgram_Runtime"},
		"`reconciler.io/runtime/apis`, `duck`, `stash`, `time`, `tracker`, `validation`": {"TestMovedProgram_Runtime"},
		"`reconciler.io/runtime/testing`":                                                {"TestMovedProgram_Runtime"},
		"`NewConfig`, `Config.WithCluster`, `Config.TrackAndGet`, …":                     {"TestMovedProgram_Runtime"},
		"`ChildObjectManager: &UpdatingObjectManager[T]{MergeBeforeUpdate: …}`":          {"TestMovedProgram_Runtime"},

		"`ConditionSet.Manage`, `AdmissionWebhookAdapter.Build`, `UpdatingObjectManager.Setup`, `tracker.Key`, `tracker.NewKey`": {
			"TestV05_ConditionSeverity", "TestV19_WebhookWithContext", "TestV05_TrackerKey",
			"TestRuntime_SetupOfAnObjectManager", "TestGoFix",
		},
	},
}
