"""Functions that SQL of a user may call: they compute on their arguments and reach no file, network or other query.

``name*`` stands for every name that begins so. Aggregate functions may carry the engine's combinators.
"""

from __future__ import annotations

import re

_SCALAR = """
and or not xor if ifNull nullIf coalesce multiIf caseWithExpression least greatest clamp assumeNotNull toNullable
isNull isNotNull isNullable isZeroOrNull isDistinctFrom isNotDistinctFrom
equals notEquals less greater lessOrEquals greaterOrEquals between in notIn globalIn globalNotIn nullIn notNullIn
exists inIgnoreSet
plus minus multiply divide divideOrNull intDiv intDivOrZero intDivOrNull modulo mod moduloOrZero positiveModulo negate
abs sign sqrt cbrt exp exp2 exp10 log log2 log10 log1p ln pow power pi e floor ceil ceiling round roundBankers trunc
truncate gcd lcm sin cos tan asin acos atan atan2 sigmoid isNaN isFinite isInfinite ifNotFinite max2 min2 widthBucket
bitAnd bitOr bitXor bitNot bitCount bitShiftLeft bitShiftRight bitTest bin unbin hex unhex char
CAST _CAST accurateCast* to* reinterpret* parseDateTime* parseReadableSize* formatReadable* formatDateTime* formatRow*
now now64 today yesterday timezone timezoneOf timeZoneOf timeZone makeDate* makeDateTime* date* addDate subDate add*
subtract* age dateDiff timeDiff timestampDiff timestamp_diff date_diff dateTrunc date_trunc time_bucket timeSlot
fromUnixTimestamp* monthName YEAR MONTH DAY HOUR MINUTE SECOND QUARTER DAYOFWEEK DAYOFMONTH DAYOFYEAR week yearweek
UUIDv7ToDateTime snowflakeIDToDateTime* curdate timestamp localtimestamp current_timestamp current_date tumble* hop*
length lengthUTF8 empty notEmpty lower upper lowerUTF8 upperUTF8 lcase ucase initcap initcapUTF8 reverse reverseUTF8
concat concatWithSeparator concat_ws substring substr mid substringUTF8 substringIndex left right leftUTF8 rightUTF8
leftPad rightPad lpad rpad leftPadUTF8 rightPadUTF8 trim trimLeft trimRight trimBoth ltrim rtrim repeat space format
printf replace replaceAll replaceOne replaceRegexpAll replaceRegexpOne translate translateUTF8 overlay
startsWith* endsWith* position positionCaseInsensitive positionUTF8 positionCaseInsensitiveUTF8 locate instr
countSubstrings* like notLike ilike notILike match notMatch extract extractAll extractGroups extractAllGroups*
regexpExtract regexpQuoteMeta countMatches* hasToken* hasAllTokens hasAnyTokens hasAllToken hasAnyToken hasPhrase
hasSubsequence* multiSearch* multiMatch* ngram* splitBy* alphaTokens tokens arrayStringConcat extractKeyValuePairs*
extractURLParameter* domain* protocol path pathFull queryString decodeURLComponent encodeURLComponent base64* base58*
editDistance* levenshteinDistance* jaroSimilarity jaroWinklerSimilarity stringJaccardIndex* damerauLevenshteinDistance
normalizeUTF8* isValidUTF8 toValidUTF8 ascii soundex firstLine highlight removeDiacriticsUTF8 stringBytesEntropy
MD5 SHA1 SHA224 SHA256 SHA384 SHA512 sipHash* cityHash64 xxHash* xxh3 murmurHash* farmHash64 halfMD5 CRC32 CRC64
JSON* simpleJSON* visitParam* isValidJSON toJSONString prettyPrintJSON
array array* has hasAll hasAny hasSubstr indexOf countEqual range flatten emptyArray* arrayJoin notHas unnest
tuple tuple* untuple map map* lambda L1Distance L2Distance LinfDistance cosineDistance L1Norm L2Norm dotProduct
rand rand32 rand64 randUniform randNormal generateUUIDv4 generateUUIDv7 identity materialize ignore bar
currentDatabase database version uptime toTypeName toColumnTypeName byteSize transform throwIf grouping
rowNumberInAllBlocks rowNumberInBlock runningDifference neighbor visibleWidth getSetting dictGet dictGetOrDefault
dictGetOrNull dictGetString dictHas
"""

_AGGREGATE = """
count countDistinct sum avg min max any anyLast any_value anyHeavy first_value last_value argMin argMax uniq uniqExact
uniqCombined uniqHLL12 uniqCombined64 median median* quantile quantile* quantiles quantiles* stddev* varPop varSamp
varPopStable varSampStable covarPop covarSamp corr skewPop skewSamp kurtPop kurtSamp entropy groupArray*
groupUniqArray group_concat groupConcat string_agg groupBitAnd groupBitOr groupBitXor topK topKWeighted histogram
sumMap minMap maxMap sumWithOverflow sumKahan sumCount avgWeighted deltaSum deltaSumTimestamp boundingRatio
simpleLinearRegression regr_* rankCorr studentTTest welchTTest mannWhitneyUTest sparkbar singleValueOrNull
windowFunnel sequenceMatch sequenceCount retention exponentialMovingAverage largestTriangleThreeBuckets contingency
row_number rank dense_rank percent_rank percentRank cume_dist ntile nth_value lag lead lagInFrame leadInFrame
"""

_TABLE = "numbers values view generate_series generateSeries zeros"

_COMBINATORS = (
    "If|Array|Map|Distinct|OrDefault|OrNull|State|SimpleState|Merge|MergeState|ForEach|Resample|ArgMin|ArgMax|Tuple"
)


def _pattern(names: str, suffix: str = "") -> str:
    return "|".join(
        re.escape(name.removesuffix("*")) + (r"\w*" if name.endswith("*") else suffix) for name in names.split()
    )


_ALLOWED = re.compile(
    f"{_pattern(_SCALAR)}|{_pattern(_TABLE)}|{_pattern(_AGGREGATE, f'({_COMBINATORS})*')}", re.IGNORECASE
)


def is_allowed(name: str) -> bool:
    """Whether a function of this name may be called; letter case does not matter."""
    return _ALLOWED.fullmatch(name) is not None
