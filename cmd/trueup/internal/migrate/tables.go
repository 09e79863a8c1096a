// SPDX-License-Identifier: Apache-2.0

package migrate

const (
	trueupModule      = "trueup.dev"
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	meta              = "k8s.io/apimachinery/pkg/apis/meta/v1"
	reconcilerRuntime = "github.com/vmware-labs/reconciler-runtime"
	appSDK            = "github.com/grafana/grafana-app-sdk"

	// pastedDir is the directory for packages that migrate writes to the module.
	pastedDir = "internal/migrated"
)

// oldModules are the modules that trueup replaces.
var oldModules = []string{reconcilerRuntime, "reconciler.io/runtime", appSDK}

// versions are what go.mod requires at least. A test compares them with the go.mod of trueup.
var versions = map[string]string{
	controllerRuntime:                  "v0.25.2",
	"k8s.io/api":                       "v0.37.2",
	"k8s.io/apiextensions-apiserver":   "v0.37.2",
	"k8s.io/apimachinery":              "v0.37.2",
	"k8s.io/apiserver":                 "v0.37.2",
	"k8s.io/client-go":                 "v0.37.2",
	"k8s.io/component-base":            "v0.37.2",
	"github.com/go-logr/logr":          "v1.4.4",
	"github.com/google/go-cmp":         "v0.7.0",
	"sigs.k8s.io/yaml":                 "v1.6.0",
	"gomodules.xyz/jsonpatch/v2":       "v2.5.0",
	"github.com/evanphx/json-patch/v5": "v5.9.11",
}

const goVersion = "1.26.0"

// Generation is a range of versions of an old module, named after the guide for it.
type Generation string

// The generations.
const (
	V01     Generation = "v0.1-v0.5"
	V06     Generation = "v0.6-v0.11"
	V12     Generation = "v0.12-v0.22"
	Runtime Generation = "runtime"
	Grafana Generation = "grafana-app-sdk"
)

// generatedPage is the guide for code that the CLI of the App SDK has generated.
const generatedPage Generation = "grafana-app-sdk-generated"

// Generations are all generations.
var Generations = []Generation{V01, V06, V12, Runtime, Grafana}

// pastedPackages are the packages that migrate writes to the module, by the package that they replace. They are the
// user's: the code that needs them uses methods which no package of Kubernetes has.
var pastedPackages = map[string]string{
	reconcilerRuntime + "/validation":        "validation",
	reconcilerRuntime + "/testing/factories": "factories",
}

// rename is another name for the same thing.
type rename struct {
	imported string // the package of the new name; empty if it is the package of the old name
	as       string // its usual name in files; empty for a type without a package
	name     string
}

// pastedName is a name of a package that migrate writes to the module.
func pastedName(name string) rename { return rename{pastedPrefix + "kit", "kit", name} }

// pastedPrefix stands for the module and the directory of pasted packages.
const pastedPrefix = "pasted:"

// renames are by the names that code selects.
var renames = map[string]rename{
	"reconcilers.ParentReconciler":          {name: "ResourceReconciler"},
	"reconcilers.CastParent":                {name: "CastResource"},
	"reconcilers.ResourceManager":           {name: "UpdatingObjectManager"},
	"reconcilers.AddParentFinalizer":        {name: "AddFinalizer"},
	"reconcilers.ClearParentFinalizer":      {name: "ClearFinalizer"},
	"reconcilers.RetrieveParentConfig":      {name: "RetrieveOriginalConfig"},
	"reconcilers.RetrieveParentConfigOrDie": {name: "RetrieveOriginalConfigOrDie"},
	"reconcilers.StashParentConfig":         {name: "StashOriginalConfig"},
	"reconcilers.RetrieveParentType":        {name: "RetrieveOriginalResourceType"},
	"reconcilers.StashParentType":           {name: "StashOriginalResourceType"},
	"reconcilers.RetrieveCastParentType":    {name: "RetrieveResourceType"},
	"reconcilers.StashCastParentType":       {name: "StashResourceType"},
	"reconcilers.HaltSubReconcilers":        {name: "ErrHaltSubReconcilers"},
	"time.RetrieveTime":                     {name: "RetrieveNow"},
	"testing.SafeDeployDiff":                {trueupModule + "/reconcilers", "reconcilers", "IgnoreAllUnexported"},
	"apis.Object":                           {controllerRuntime + "/pkg/client", "client", "Object"},
	"apis.Condition":                        {meta, "metav1", "Condition"},
	"apis.VolatileTime":                     {meta, "metav1", "Time"},
	"apis.ConditionType":                    {name: "string", as: builtin},
	"testing.Factory":                       pastedName("Factory"),
	"testing.Wrapper":                       pastedName("Wrapper"),
	"testing.AssertErrorEqual":              pastedName("AssertErrorEqual"),
	"testing.AssertErrorMessagef":           pastedName("AssertErrorMessagef"),
	"testing.TestLogger":                    {"github.com/go-logr/logr/testr", "testr", "New"},

	"operator.SimpleWatcher":           {trueupModule + "/simple", "simple", "Watcher"},
	"operator.SimpleReconciler":        {trueupModule + "/simple", "simple", "Reconciler"},
	"operator.Informer":                {trueupModule + "/informer", "informer", "Informer"},
	"operator.InformerOptions":         {trueupModule + "/informer", "informer", "Options"},
	"operator.ListWatchOptions":        {trueupModule + "/informer", "informer", "Options"},
	"simple.InformerSupplier":          {trueupModule + "/informer", "informer", "Supplier"},
	"simple.DefaultInformerSupplier":   {trueupModule + "/informer", "informer", "DefaultSupplier"},
	"simple.OptimizedInformerSupplier": {trueupModule + "/informer", "informer", "DefaultSupplier"},
	"k8s.Converter":                    {trueupModule + "/simple", "simple", "Converter"},
	"k8s.RawKind":                      {trueupModule + "/simple", "simple", "RawKind"},
	"k8s.TLSConfig":                    {trueupModule + "/operator", "operator", "RunnerTLSConfig"},
	"resource.AdmissionRequest":        {trueupModule + "/app", "app", "AdmissionRequest"},
	"resource.AdmissionAction":         {trueupModule + "/app", "app", "AdmissionAction"},
	"resource.AdmissionActionConnect":  {trueupModule + "/app", "app", "AdmissionActionConnect"},
	"resource.AdmissionActionCreate":   {trueupModule + "/app", "app", "AdmissionActionCreate"},
	"resource.AdmissionActionDelete":   {trueupModule + "/app", "app", "AdmissionActionDelete"},
	"resource.AdmissionActionUpdate":   {trueupModule + "/app", "app", "AdmissionActionUpdate"},
	"resource.MutatingResponse":        {trueupModule + "/app", "app", "MutatingResponse"},
	"health.Check":                     {trueupModule + "/app", "app", "HealthCheck"},
	"health.Checker":                   {trueupModule + "/app", "app", "HealthChecker"},
}

const builtin = "builtin"

// generic is a type that had no type parameters in the first two generations.
type generic struct {
	parameters int
	element    string // the type of the elements, if literals leave it out
	nestedSlot int    // the parameter that nested reconcilers have
	facts      map[string][]fact
}

// fact says which part of a field's value is a type parameter.
type fact struct {
	of    part
	index int // negative: from the end
	slot  int
}

type part int

const (
	theType part = iota
	aParameter
	aResult
)

var (
	resource     = []fact{{theType, 0, 0}}
	syncFunction = []fact{{aParameter, 1, 0}}
	objectFields = func(slot int) map[string][]fact {
		return map[string][]fact{
			"HarmonizeImmutableFields": {{aParameter, 0, slot}},
			"MergeBeforeUpdate":        {{aParameter, 0, slot}},
			"SemanticEquals":           {{aParameter, 0, slot}},
			"Sanitize":                 {{aParameter, 0, slot}},
		}
	}
	testCase = map[string][]fact{
		"Resource": resource, "Parent": resource, "ExpectResource": resource, "ExpectParent": resource,
	}
	flowControl = map[string][]fact{"Condition": syncFunction, "Sync": syncFunction, "Finalize": syncFunction}
)

var generics = map[string]generic{
	"reconcilers.SubReconciler":           {parameters: 1},
	"reconcilers.Sequence":                {parameters: 1},
	"reconcilers.SyncReconciler":          {parameters: 1, facts: flowControl},
	"reconcilers.IfThen":                  {parameters: 1, facts: flowControl},
	"reconcilers.While":                   {parameters: 1, facts: flowControl},
	"reconcilers.TryCatch":                {parameters: 1},
	"reconcilers.OverrideSetup":           {parameters: 1},
	"reconcilers.WithConfig":              {parameters: 1},
	"reconcilers.WithFinalizer":           {parameters: 1},
	"reconcilers.ResourceReconciler":      {parameters: 1, facts: map[string][]fact{"Type": resource}},
	"reconcilers.ParentReconciler":        {parameters: 1, facts: map[string][]fact{"Type": resource}},
	"reconcilers.AdmissionWebhookAdapter": {parameters: 1, facts: map[string][]fact{"Type": resource}},
	"reconcilers.AggregateReconciler": {parameters: 1, facts: with(objectFields(0), map[string][]fact{
		"Type": resource, "DesiredResource": syncFunction,
	})},
	"reconcilers.ResourceManager": {parameters: 1, facts: with(objectFields(0), map[string][]fact{"Type": resource})},
	"reconcilers.CastResource":    cast,
	"reconcilers.CastParent":      cast,
	"reconcilers.ChildReconciler": {parameters: 3, facts: with(objectFields(1), map[string][]fact{
		"ParentType":                 resource,
		"ChildType":                  {{theType, 0, 1}},
		"ChildListType":              {{theType, 0, 2}},
		"DesiredChild":               {{aParameter, 1, 0}, {aResult, 0, 1}},
		"ReflectChildStatusOnParent": {{aParameter, -3, 0}, {aParameter, -2, 1}},
		"OurChild":                   {{aParameter, 0, 0}, {aParameter, 1, 1}},
	})},
	"testing.SubReconcilerTests":     {parameters: 1, element: "testing.SubReconcilerTestCase"},
	"testing.SubReconcilerTestSuite": {parameters: 1, element: "testing.SubReconcilerTestCase"},
	"testing.SubReconcilerTestCase":  {parameters: 1, facts: testCase},
	"testing.SubReconcilerFactory":   {parameters: 1},
}

var cast = generic{parameters: 2, nestedSlot: 1, facts: map[string][]fact{"Type": {{theType, 0, 1}}}}

// nestedFields have reconcilers of the same resource.
var nestedFields = map[string]bool{
	"Reconciler": true, "SubReconcilers": true, "Then": true, "Else": true, "Try": true, "Finally": true,
}

func with(fields, more map[string][]fact) map[string][]fact {
	for field, facts := range more {
		fields[field] = facts
	}
	return fields
}

// change is what happens to a field of a literal.
type change int

const (
	remove       change = iota // the field does not exist; the framework does what it was for
	removeReview               // as remove, and the reader should compare the behavior
	removeConfig               // as remove, if the value is a config from elsewhere
	withResult                 // functions that return a result have a field of their own
	reflectStatus
	returnsAny
	returnsType
	setUpContext
	prepareContext
	cleanUpContext
	asSequence
	objectList
	object
)

// fields are the changes of fields, by type.
var fields = map[string]map[string]change{
	"reconcilers.SyncReconciler": {
		"Sync": withResult, "Finalize": withResult, "Setup": setUpContext, "Config": removeConfig,
	},
	"reconcilers.ChildReconciler": {
		"ParentType": remove, "IndexField": remove, "Config": removeConfig, "SemanticEquals": removeReview,
		"ReflectChildStatusOnParent": reflectStatus, "Sanitize": returnsAny, "Setup": setUpContext,
	},
	"reconcilers.AggregateReconciler": {
		"ListType": remove, "SemanticEquals": removeReview, "Sanitize": returnsAny, "DesiredResource": returnsType,
		"Setup": setUpContext,
	},
	"reconcilers.ResourceManager":    {"SemanticEquals": removeReview, "Sanitize": returnsAny},
	"reconcilers.ParentReconciler":   {"SubReconcilers": asSequence, "Setup": setUpContext},
	"reconcilers.ResourceReconciler": {"Setup": setUpContext},
	"reconcilers.CastResource":       {"Type": remove, "Setup": setUpContext},
	"reconcilers.CastParent":         {"Type": remove, "Setup": setUpContext},
	"reconcilers.Config":             {"Log": remove, "Scheme": remove},
	"testing.ReconcilerTestCase":     testCaseFields,
	"testing.SubReconcilerTestCase":  testCaseFields,
}

var testCaseFields = map[string]change{
	"Prepare": prepareContext, "CleanUp": cleanUpContext, "GivenObjects": objectList, "APIGivenObjects": objectList,
	"ExpectCreates": objectList, "ExpectUpdates": objectList, "ExpectStatusUpdates": objectList, "Parent": object,
	"Resource": object, "ExpectParent": object, "ExpectResource": object,
}

// elements are the types of elements of lists and maps without a type parameter.
var elements = map[string]string{
	"testing.ReconcilerTests":        "testing.ReconcilerTestCase",
	"testing.ReconcilerTestSuite":    "testing.ReconcilerTestCase",
	"testing.Table":                  "testing.ReconcilerTestCase",
	"testing.SubReconcilerTests":     "testing.SubReconcilerTestCase",
	"testing.SubReconcilerTestSuite": "testing.SubReconcilerTestCase",
}

// row is a row of a guide.
type row struct {
	page Generation
	old  string // what its left column contains
}

// rows are the rows for names that have no rule, by the name that code selects, then by the name of a method or field.
var rows = map[string]row{
	"reconcilers.IndexControllersOfType": {V01, "IndexControllersOfType"},
	"reconcilers.Kind":                   {V12, "reconcilers.Kind"},
	"apis.ConditionSeverity":             {V01, "apis.ConditionSeverity"},
	"apis.NowFunc":                       {V12, "apis.NowFunc"},
	"testing.NewFakeClient":              {V06, "rtesting.NewFakeClient"},
	"testing.CompareActions":             {V06, "CompareActions"},
	"testing.TestResource":               {V01, "rtesting.TestResource"},
	"tracker.New":                        {V12, "tracker.New(lease)"},
	"webhook.Defaulter":                  {V12, "ValidateCreate()"},
	"MetricsBindAddress":                 {V12, "MetricsBindAddress"},
	"workqueue.RateLimitingInterface":    {V12, "workqueue.RateLimitingInterface"},

	"SetResourceManager": {V12, "SetResourceManager"},
	"Track":              {V12, "Tracker.Track"},
	"TrackChild":         {V12, "TrackChild"},
	"Lookup":             {V12, "Lookup"},
	"IsTrue":             {V01, "Condition.IsTrue()"},
	"IsFalse":            {V01, "Condition.IsTrue()"},
	"IsUnknown":          {V01, "Condition.IsTrue()"},
	"Severity":           {V01, "apis.ConditionSeverity"},
	"MarkTrue":           {V01, "MarkTrue(t)"},
	"SemanticEquals":     {V06, "SemanticEquals"},
	"DesiredResource":    {V06, "DesiredResource"},

	"operator.NewOpinionatedWatcher":      {Grafana, "operator.NewOpinionatedWatcher"},
	"operator.NewOpinionatedReconciler":   {Grafana, "operator.NewOpinionatedReconciler"},
	"operator.OpinionatedWatcherConfig":   {Grafana, "operator.OpinionatedWatcherConfig"},
	"operator.RetryProcessor":             {Grafana, "operator.RetryProcessor"},
	"operator.NewKubernetesBasedInformer": {Grafana, "operator.NewKubernetesBasedInformer"},
	"operator.NewConcurrentInformer":      {Grafana, "NewConcurrentInformer"},
	"operator.NewCustomCacheInformer":     {Grafana, "operator.NewCustomCacheInformer"},
	"operator.NewMemcachedInformer":       {Grafana, "NewMemcachedInformer"},
	"k8s.NewClientRegistry":               {Grafana, "k8s.NewClientRegistry"},
	"app.NewOnDiskManifest":               {Grafana, "app.NewOnDiskManifest"},
	"app.NewEmbeddedManifest":             {Grafana, "app.NewEmbeddedManifest"},
	"app.MultiRunner":                     {Grafana, "app.MultiRunner"},
	"simple.Operator":                     {Grafana, "simple.Operator"},
	"operator.Operator":                   {Grafana, "operator.Operator"},
	"resource.SimpleStore":                {Grafana, "resource.SimpleStore"},
	"resource.UntypedObject":              {Grafana, "resource.UntypedObject"},
	"resource.TypedClient":                {Grafana, "TypedClient"},
	"resource.NewTypedClient":             {generatedPage, "NewMyKindClient"},
	"resource.CustomRouteClient":          {generatedPage, "client_gen.go"},
	"app.NewAPIServerManifest":            {generatedPage, "RemoteManifest()"},
	"GetStaticMetadata":                   {Grafana, "obj.GetStaticMetadata()"},
}
