// SPDX-License-Identifier: Apache-2.0

package controller

// The stashes pass values between steps, for cases that test one step.
var (
	ThemeStash   = themeStash
	FilesStash   = filesStash
	AddressStash = addressStash
	Pages        = pages
)
