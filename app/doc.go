// SPDX-License-Identifier: Apache-2.0

// Package app says what an app is: the types by which apps and those who run them know each other. An [App] has kinds that it manages, answers admission and
// conversion requests for them, and runs. A [Provider] makes an App for a cluster.
//
// Most apps are made by package simple, of a config, and run by an operator.Runner. An app that wants something else embeds a *simple.App or implements App.
package app
