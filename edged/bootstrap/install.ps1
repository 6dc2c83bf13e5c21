# Installs noded on this machine and joins it to the iop cluster whose edge made this script. It checks what it downloads,
# needs no administrator, changes nothing outside of its directory but the service, and says what it did.
#
#   $env:IOP_JOIN_TOKEN = '...'; .\install.ps1 [-Prefix DIR] [-Config FILE] [-NoService] [-Edge URL]
param(
    [string]$Prefix = (Join-Path $env:LOCALAPPDATA 'iop'),
    [string]$Config = '',
    [string]$Edge = '@URL@',
    [switch]$NoService
)
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
[Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

$plaintext = @('@PLAINTEXT@' | Where-Object { $_ }) # whether the edge accepts joining over plain HTTP
$sums = @'
@SUMS@
'@

function Say([string]$text) { Write-Host "iop: $text" }

function Get-Build {
    $arch = $env:PROCESSOR_ARCHITEW6432
    if (-not $arch) { $arch = $env:PROCESSOR_ARCHITECTURE }
    switch ($arch) {
        'AMD64' { return 'noded-windows-amd64.exe' }
        'ARM64' { return 'noded-windows-arm64.exe' }
    }
    throw "iop: no build for the processor $arch"
}

function Get-Sum([string]$build) {
    foreach ($line in $sums -split "`n") {
        $parts = $line.Trim() -split '\s+'
        if ($parts.Count -eq 2 -and $parts[1] -eq $build) { return $parts[0] }
    }
    throw "iop: the edge has no build ${build}: the operator makes it with 'make artifacts'"
}

$token = $env:IOP_JOIN_TOKEN
$env:IOP_JOIN_TOKEN = $null
$Edge = $Edge.TrimEnd('/')
if (-not $Config) { $Config = Join-Path $Prefix 'node.yaml' }
$build = Get-Build
$want = Get-Sum $build
$bin = Join-Path $Prefix 'bin'
$noded = Join-Path $bin 'noded.exe'
$work = Join-Path ([IO.Path]::GetTempPath()) ('iop-' + [Guid]::NewGuid().ToString('N') + '.exe')
try {
    Say "downloading $Edge/bootstrap/$build"
    Invoke-WebRequest -UseBasicParsing -Uri "$Edge/bootstrap/$build" -OutFile $work
    $have = (Get-FileHash -Algorithm SHA256 -Path $work).Hash.ToLowerInvariant()
    if ($have -ne $want) { throw "iop: the build has SHA-256 $have, not $want as the edge promised: nothing was installed" }
    Say "its SHA-256 is right: $want"
    & $work --version | Out-Null
    if ($LASTEXITCODE -ne 0) { throw 'iop: the build does not run on this machine' }
    New-Item -ItemType Directory -Force -Path $bin | Out-Null
    # A program that runs can be renamed, but not replaced.
    if (Test-Path $noded) {
        Remove-Item -Force -ErrorAction SilentlyContinue "$noded.old"
        Move-Item -Force $noded "$noded.old"
    }
    Copy-Item $work $noded
}
finally {
    Remove-Item -Force -ErrorAction SilentlyContinue $work
}
Say "installed $(& $noded --version) as $noded"

if (-not $token) {
    Say "not joined, as IOP_JOIN_TOKEN is not set. Later: `$env:IOP_JOIN_TOKEN = '...'; & '$noded' join --edge $Edge --config '$Config' $plaintext"
    return
}
$env:IOP_JOIN_TOKEN = $token
try { & $noded join --edge $Edge --config $Config @plaintext }
finally { $env:IOP_JOIN_TOKEN = $null }
if ($LASTEXITCODE -ne 0) { throw "iop: it did not join; noded stays installed as $noded" }

$hasService = $false
$me = [Security.Principal.WindowsPrincipal][Security.Principal.WindowsIdentity]::GetCurrent()
if (-not $NoService -and $me.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)) {
    & $noded service print --help *> $null
    $hasService = $LASTEXITCODE -eq 0
}
if ($hasService) {
    & $noded service install --config $Config
    if ($LASTEXITCODE -ne 0) { throw "iop: the service was not installed. noded runs with: & '$noded' --config '$Config'" }
    Say 'installed the service'
}
else {
    Say "no service was installed (an administrator can: & '$noded' service install --config '$Config'). noded runs with: & '$noded' --config '$Config'"
}
Say 'done'
